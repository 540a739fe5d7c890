# A chat whose page follows a Skillbook.Conversation by server-sent events. In packages/web:
# mix run ../../examples/chat.exs, then open http://127.0.0.1:4005
#
# MODEL_URL is a server with OpenAI's API, and MODEL its model. Without them a function answers.
# There is no sign-in, so this listens on 127.0.0.1 alone.

defmodule ChatExample do
  alias Skillbook.Conversation
  alias Skillbook.Web.{Request, Response}

  @page """
  <!doctype html>
  <meta charset="utf-8">
  <title>Chat</title>
  <ol id="log"></ol>
  <form><input name="text" autofocus autocomplete="off"> <button>Say</button></form>
  <script>
    const id = (location.hash ||= crypto.randomUUID()).replace("#", "");
    const log = document.querySelector("#log");
    const item = (text) => Object.assign(document.createElement("li"), { textContent: text });
    const add = (text) => log.appendChild(item(text));
    const events = new EventSource(`/chats/${id}/events`);
    let answer = null;
    const on = (name, run) => events.addEventListener(name, ({ data }) => run(JSON.parse(data)));
    on("input", ({ text }) => { add(text); answer = null; });
    on("text", ({ text }) => { (answer ??= add("")).textContent += text; });
    on("result", ({ command, status }) => { add(`${command}: ${status}`); answer = null; });
    on("ended", ({ status }) => { if (status !== "done") add(status); });
    document.querySelector("form").onsubmit = (event) => {
      event.preventDefault();
      const { text } = event.target.elements;
      fetch(`/chats/${id}`, { method: "POST", body: text.value });
      text.value = "";
    };
  </script>
  """

  def handle(%Request{method: "GET", path: []}), do: Response.html(200, @page)

  def handle(%Request{path: ["chats", id | rest], method: method} = request) do
    if id =~ ~r/\A[\w-]{1,40}\z/, do: chat(method, rest, id, request), else: missing()
  end

  def handle(_request), do: missing()

  defp missing, do: Response.text(404, "Not found.\n")

  defp chat("POST", [], id, %{body: text, headers: headers}) do
    # Pages of other websites may send forms, too.
    if List.keyfind(headers, "sec-fetch-site", 0) in [nil, {"sec-fetch-site", "same-origin"}] and
         String.valid?(text) and String.trim(text) != "" and byte_size(text) <= 8_000 do
      case Conversation.say(conversation(id), text) do
        {:ok, _turn} -> Response.json(202, %{})
        {:error, error} -> Response.json(429, %{error: Exception.message(error)})
      end
    else
      Response.json(422, %{error: "expected a text of at most 8,000 bytes"})
    end
  end

  defp chat("GET", ["events"], id, _request) do
    Response.events(fn send_event ->
      :ok = Conversation.subscribe(conversation(id))
      send_event.("ready", Conversation.info(conversation(id)).status)

      fn
        {:skillbook_conversation, ^id, event} -> tell(event, send_event)
        _other -> :ok
      end
    end)
  end

  defp chat(_method, _rest, _id, _request), do: missing()

  # `:done` ends the stream, and the browser opens another one.
  defp tell(:idle, _send_event), do: :done
  defp tell({:started, _turn, text}, send_event), do: send_event.("input", %{text: text})

  defp tell({:event, _turn, {:text, text}}, send_event), do: send_event.("text", %{text: text})

  defp tell({:event, _turn, {:result, result}}, send_event),
    do: send_event.("result", Map.take(result, [:command, :status]))

  defp tell({:ended, _turn, {:ok, %{status: status}}}, send_event),
    do: send_event.("ended", %{status: status})

  defp tell({:ended, _turn, {:error, _error}}, send_event),
    do: send_event.("ended", %{status: :error})

  defp tell(_other, _send_event), do: :ok

  # The conversation of an id, which is started if there is none.
  defp conversation(id) do
    name = {:via, Registry, {ChatExample.Registry, id}}
    child = {Conversation, book: ChatExample.Book, id: id, name: name}

    case DynamicSupervisor.start_child(ChatExample.Chats, child) do
      {:ok, _pid} -> name
      {:error, {:already_started, _pid}} -> name
    end
  end

  def model(nil) do
    Skillbook.Model.Function.new(fn messages, _options, on_text ->
      text = reply(List.last(messages).content)
      for word <- String.split(text, ~r/(?<= )/), do: on_text.(word)
      text
    end)
  end

  def model(url), do: Skillbook.Model.OpenAI.new!(url: url, model: System.get_env("MODEL"))

  defp reply("[1] " <> _report), do: "I will remember it."
  defp reply(text), do: "Let me note that.\n\n```cmd\nmemory.save --content #{inspect(text)}\n```"
end

children = [
  {Skillbook,
   name: ChatExample.Book,
   builtins: ["memory"],
   store: ":memory:",
   agent: [model: ChatExample.model(System.get_env("MODEL_URL"))]},
  {Registry, keys: :unique, name: ChatExample.Registry},
  {DynamicSupervisor, name: ChatExample.Chats, max_children: 100},
  {Skillbook.Web.Server,
   name: ChatExample.Server,
   handler: &ChatExample.handle/1,
   port: String.to_integer(System.get_env("PORT", "4005"))}
]

{:ok, _supervisor} = Supervisor.start_link(children, strategy: :one_for_one)
IO.puts("Open #{Skillbook.Web.Server.info(ChatExample.Server).url}")
Process.sleep(:infinity)
