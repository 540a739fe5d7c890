// The official TypeScript client as a user of our server. Prints its findings as JSON.
//
//   node client.mjs REVISION http URL
//   node client.mjs REVISION stdio COMMAND ARGUMENT...

import { createRequire } from 'node:module';

const require = createRequire(`${process.env.SKILLBOOK_MCP}/`);
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');
const { SkillsClient } = require('@modelcontextprotocol/client/ext/skills');

const [revision, way, target, ...args] = process.argv.slice(2);
const modern = revision === '2026-07-28';
const found = { asked: [], notified: [] };
const client = new Client(
  { name: 'judge', version: '1' },
  {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: modern ? { pin: revision } : 'legacy' },
  },
);

client.setRequestHandler('elicitation/create', async ({ params }) => {
  found.asked.push(params.message);
  return { action: 'accept', content: {} };
});
client.setNotificationHandler('notifications/resources/updated', async ({ params }) => {
  found.notified.push(params.uri);
});
client.setNotificationHandler('notifications/resources/list_changed', async () => {
  found.notified.push('list');
});

const transport =
  way === 'http'
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, args, stderr: 'ignore', env: process.env });
await client.connect(transport);

const text = (result) => result.content.map((part) => part.text).join('');
const uris = ({ resources }) => resources.map(({ uri }) => uri);
const read = async (uri) => (await client.readResource({ uri })).contents[0];

found.version = client.getNegotiatedProtocolVersion?.() ?? null;
found.tools = (await client.listTools()).tools.map(({ name }) => name).sort();
found.call = text(await client.callTool({ name: 'test_simple_text', arguments: {} }));
found.failed = await client.callTool({ name: 'test_error_handling', arguments: {} });
found.done = text(
  await client.callTool({ name: 'test_elicitation', arguments: { message: 'Hello' } }),
);
found.resources = uris(await client.listResources());
found.templates = (await client.listResourceTemplates()).resourceTemplates.length;
found.text = (await read('skill://a-guide/references/forms.md')).text;
found.blob = (await read('skill://a-guide/assets/logo.png')).blob;
found.prompts = (await client.listPrompts()).prompts.map(({ name }) => name).sort();
const prompt = await client.getPrompt({
  name: 'test_prompt_with_arguments',
  arguments: { arg1: 'one', arg2: 'two' },
});
found.prompt = prompt.messages[0].content.text;

// Every file of every skill, checked by the client against digest, size and frontmatter.
const skills = new SkillsClient(client);
found.verified = 0;
const { skills: entries } = await skills.list();
found.skills = entries.map(({ uri }) => uri);
for (const entry of entries) {
  for (const { uri } of entry.resources) {
    const file = await skills.read(entry, uri);
    found.verified += file.verified ? 1 : 0;
  }
}
found.folder = uris(await skills.readDirectory('skill://a-guide'));

// A change that is told of.
const watched = 'skill://test-greeting/SKILL.md';
if (modern) {
  await client.listen({ resourcesListChanged: true, resourceSubscriptions: [watched] });
} else {
  await client.subscribeResource({ uri: watched });
}
await client.callTool({ name: 'test_trigger_prompt_change', arguments: {} });
const ends = Date.now() + 20_000;
while (!(found.notified.includes('list') && found.notified.includes(watched))) {
  if (Date.now() > ends) break;
  await new Promise((resolve) => setTimeout(resolve, 20));
}

found.notified = [...new Set(found.notified)].sort();
await client.close();
console.log(JSON.stringify(found));
process.exit(0);
