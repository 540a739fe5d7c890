// A server of the official TypeScript SDK over standard input and output, with a skill.
import { createRequire } from "node:module";
import { createHash } from "node:crypto";

const require = createRequire(process.env.SKILLBOOK_MCP + "/");
const { Server } = require("@modelcontextprotocol/sdk/server/index.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const types = require("@modelcontextprotocol/sdk/types.js");
const { z } = require("zod");

const text = "---\nname: greet\ndescription: Greets people\nversion: 1.0\n---\n# Greet\n\nSay hello.\n";
const digest = "sha256:" + createHash("sha256").update(text).digest("hex");
const uri = "skill://greet/SKILL.md";
const extensions = { "io.modelcontextprotocol/skills": {} };
const server = new Server({ name: "official", version: "1.0.0" }, { capabilities: { tools: {}, resources: {}, extensions } });

server.setRequestHandler(types.ListToolsRequestSchema, async () => ({
  tools: [{ name: "echo", description: "Echoes a text", inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] } }],
}));
server.setRequestHandler(types.CallToolRequestSchema, async (request) => ({ content: [{ type: "text", text: request.params.arguments.text }] }));
server.setRequestHandler(z.object({ method: z.literal("skills/list"), params: z.any().optional() }), async () => ({
  skills: [{ uri, frontmatter: { name: "greet", description: "Greets people", version: 1.0 }, resources: [{ uri, digest, size: Buffer.byteLength(text) }] }],
}));
server.setRequestHandler(types.ReadResourceRequestSchema, async (request) => ({ contents: [{ uri: request.params.uri, mimeType: "text/markdown", text }] }));

await server.connect(new StdioServerTransport());
