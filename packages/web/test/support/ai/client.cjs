// A client with Vercel's AI SDK: sends messages as useChat does, and prints what it read as JSON.
// AI names the package; MESSAGES are texts of the user, each sent after the answer to the last.
const { CHAT, TOKEN, AI, MESSAGES } = process.env;
const ai = require(AI);
const headers = { authorization: `Bearer ${TOKEN}` };

async function main() {
  const transport = new ai.DefaultChatTransport({ api: CHAT, headers });
  const messages = [];
  const answers = [];

  for (const [number, text] of JSON.parse(MESSAGES).entries()) {
    messages.push({ id: `u${number}`, role: "user", parts: [{ type: "text", text }] });
    const request = { trigger: "submit-message", chatId: "c-1", messages, messageId: undefined };
    const stream = await transport.sendMessages({ ...request, abortSignal: undefined });
    const errors = [];
    let last;
    const onError = (error) => errors.push(error.message);
    for await (const message of ai.readUIMessageStream({ stream, onError })) last = message;
    messages.push(last);
    answers.push({ parts: last.parts, metadata: last.metadata, errors });
  }

  // The same chunks, each checked by the schema of the protocol.
  const body = JSON.stringify({ id: "c-2", messages: messages.slice(0, 1) });
  const response = await fetch(CHAT, { method: "POST", headers, body });
  const schema = ai.uiMessageChunkSchema;
  const wrong = [];
  for await (const chunk of ai.parseJsonEventStream({ stream: response.body, schema }))
    if (!chunk.success) wrong.push(chunk.error.message);
  console.log(JSON.stringify({ answers, wrong }));
}

main().catch((error) => console.log(JSON.stringify({ error: error.message })));
