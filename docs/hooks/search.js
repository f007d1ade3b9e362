// Answers the queries of standard input as the search of the site does: with its own worker, on its index.
const fs = require("fs"), vm = require("vm"), path = require("path");
const [site] = process.argv.slice(2);
const folder = path.join(site, "assets/javascripts/workers");
const worker = fs.readFileSync(path.join(folder, fs.readdirSync(folder).find(name => /^search.*\.js$/.test(name))), "utf8");
const index = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json"), "utf8"));
const queries = JSON.parse(fs.readFileSync(0, "utf8"));
const listeners = [], found = {};
const scope = {
  addEventListener: (_, listener) => listeners.push(listener),
  postMessage: (message) => {
    if (message.type === 3) found[queries[Object.keys(found).length]] = message.data.items.map(items => items[0].location);
    if (Object.keys(found).length < queries.length) send({type: 2, data: queries[Object.keys(found).length]});
    else process.stdout.write(JSON.stringify(found));
  },
  importScripts: () => undefined, location: {href: "http://localhost/"}, console, setTimeout, URL, performance,
};
scope.self = scope;
const send = (message) => listeners.forEach(listener => listener({data: message}));
vm.runInNewContext(worker, scope);
send({type: 0, data: {...index, options: {suggest: false}}});
