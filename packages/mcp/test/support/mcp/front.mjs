// Stands between a judge with names of its own, such as `test://static-text`, and our server, which
// has others: replaces them in requests, and back in answers. It prints its URL.
//
//   node front.mjs http://127.0.0.1:4004/mcp test://static-text=skill://static/text.txt

import http from 'node:http';

const names = process.argv.slice(3).map((pair) => pair.split('='));

const ours = (text) => names.reduce((done, [theirs, own]) => done.replaceAll(theirs, own), text);
const theirs = (text) => names.reduce((done, [theirs, own]) => done.replaceAll(own, theirs), text);
const target = new URL(process.argv[2]);

const server = http.createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = ours(Buffer.concat(parts).toString());
  const headers = { ...request.headers, host: target.host };
  for (const name of ['content-length', 'transfer-encoding', 'connection']) delete headers[name];
  for (const name of Object.keys(headers)) headers[name] = ours(headers[name]);
  const options = { method: request.method, headers };
  const asked = http.request(target, options, async (answer) => {
    const parts = [];
    for await (const part of answer) parts.push(part);
    const text = theirs(Buffer.concat(parts).toString());
    const headers = { ...answer.headers, 'content-length': Buffer.byteLength(text) };
    delete headers['transfer-encoding'];
    delete headers['connection'];
    response.writeHead(answer.statusCode, headers);
    response.end(text);
  });
  asked.on('error', () => response.destroy());
  asked.end(body);
});

// The program that has started this one has ended.
process.stdin.on('end', () => process.exit()).resume();
server.listen(0, '127.0.0.1', () =>
  console.log(`http://127.0.0.1:${server.address().port}${target.pathname}`),
);
