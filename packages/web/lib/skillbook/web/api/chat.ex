defmodule Skillbook.Web.API.Chat do
  @moduledoc false
  # `POST /api/chat`: conversations with the book's model for `useChat` of Vercel's AI SDK. The
  # answer is a UI message stream of version 5: server-sent events, each a chunk as JSON.
  #
  # The conversation is the server's (`Skillbook.Web.Page.Chats`), under the client's id for it.
  # Of the client's messages only the last one is read, so a client cannot invent what the model
  # said or what a command returned. A client that goes away ends the answer.
  #
  # Source: https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol

  alias Skillbook.Result
  alias Skillbook.Web.{Request, Response}
  alias Skillbook.Web.Page.Chats

  @max_body 1_048_576
  @max_messages 1_000
  @max_id 200
  # Characters of the name of a command.
  @max_name 100
  @not_run "It did not run."

  @doc false
  @spec handle(Request.t(), Skillbook.Web.t()) :: Response.t()
  def handle(%Request{method: "POST", caller: caller} = request, _web) do
    with {:ok, name, input} <- read(request),
         chat = Chats.open(caller, name),
         :ok <- known(chat, request) do
      stream(caller, chat, input)
    else
      {:error, status, text} -> error(status, text)
    end
  end

  def handle(_request, _web),
    do: 405 |> error("Send a conversation: POST.") |> Response.put_header("allow", "POST")

  defp error(status, text), do: Response.json(status, %{error: text})

  # The request

  defp read(%Request{body: body}) when byte_size(body) > @max_body,
    do: {:error, 413, "Expected a body of at most #{@max_body} bytes."}

  defp read(request) do
    with {:ok, %{} = body} <- Request.json(request),
         :ok <- trigger(body["trigger"]),
         {:ok, name} <- name(body["id"]),
         {:ok, message} <- last(body["messages"]),
         {:ok, input} <- text(message) do
      {:ok, name, input}
    else
      {:error, expected} when is_binary(expected) -> {:error, 422, "Expected #{expected}."}
      _no_object -> {:error, 400, "Expected a JSON object as the body."}
    end
  end

  defp trigger(trigger) when trigger in [nil, "submit-message"], do: :ok
  defp trigger(_other), do: {:error, ~s("submit-message" as trigger)}

  defp name(name) when is_binary(name) and byte_size(name) in 1..@max_id, do: {:ok, name}
  defp name(_other), do: {:error, "a text of 1 to #{@max_id} bytes as id"}

  defp last([_ | _] = messages) when length(messages) <= @max_messages,
    do: {:ok, List.last(messages)}

  defp last(_other), do: {:error, "a list of 1 to #{@max_messages} messages as messages"}

  defp text(%{"role" => "user", "parts" => [_ | _] = parts}) do
    if Enum.all?(parts, &match?(%{"type" => "text", "text" => <<_::binary>>}, &1)),
      do: {:ok, Enum.map_join(parts, "\n\n", & &1["text"])},
      else: {:error, "parts of the type text in the last message"}
  end

  defp text(_other), do: {:error, "a message of the user with parts as the last message"}

  # A conversation that the server no longer has would go on without what was said before.
  defp known(%{status: :new}, request) do
    {:ok, %{"messages" => messages}} = Request.json(request)

    if Enum.count(messages, &match?(%{"role" => "user"}, &1)) > 1,
      do: {:error, 409, "This conversation is no longer kept. Begin a new one, with another id."},
      else: :ok
  end

  defp known(_chat, _request), do: :ok

  # The answer

  defp stream(caller, chat, input) do
    response =
      Response.events(fn send_event ->
        send = fn chunks -> for chunk <- chunks, do: send_event.(nil, chunk) end

        case Chats.say(caller, input, chat, self()) do
          {:ok, %{pid: pid} = chat} ->
            Process.put(__MODULE__, chat)
            monitor = Process.monitor(pid)
            send.([%{type: "start"}])
            answer = %{pid: pid, monitor: monitor, step?: false, text: nil, calls: [], next: 1}
            Process.put({__MODULE__, :answer}, answer)
            &receive_event(&1, send, send_event)

          {:error, text} ->
            send.([%{type: "start"}, %{type: "error", errorText: text}, %{type: "finish"}])
            send_event.(nil, "[DONE]")
        end
      end)

    response
    |> Map.update!(:body, fn {:stream, fun} -> {:stream, &stopped(fun, &1, caller)} end)
    |> Response.put_header("x-vercel-ai-ui-message-stream", "v1")
  end

  # The process may serve another request after a client has gone.
  defp stopped(fun, write, caller) do
    fun.(write)
  after
    with %{pid: pid} = chat <- Process.delete(__MODULE__),
         true <- Process.alive?(pid),
         do: Chats.stop(caller, chat)

    Process.delete({__MODULE__, :answer})
  end

  defp receive_event(message, send, send_event) do
    answer = Process.get({__MODULE__, :answer})
    %{pid: pid, monitor: monitor} = answer

    case message do
      {:skillbook_chat_event, ^pid, {:ended, chat}} ->
        Process.demonitor(monitor, [:flush])
        {chunks, _answer} = close_step(answer)
        done(chunks ++ ending(chat), send, send_event)

      {:skillbook_chat_event, ^pid, event} ->
        {chunks, answer} = chunks(event, answer)
        Process.put({__MODULE__, :answer}, answer)
        send.(chunks)

      # The user has stopped it on the page, or it crashed.
      {:DOWN, ^monitor, :process, ^pid, reason} ->
        {chunks, _answer} = close_step(answer)
        done(chunks ++ broken(reason), send, send_event)

      _other ->
        :ok
    end
  end

  defp done(chunks, send, send_event) do
    send.(chunks)
    send_event.(nil, "[DONE]")
    :done
  end

  defp ending(chat) do
    errors = if chat.error, do: [%{type: "error", errorText: chat.error}], else: []
    metadata = %{status: chat.status, pending: chat.pending}
    errors ++ [%{type: "finish", messageMetadata: metadata}]
  end

  defp broken(:killed), do: [%{type: "abort"}]

  defp broken(_reason),
    do: [%{type: "error", errorText: "The answer ended with an error."}, %{type: "finish"}]

  # Events of `Skillbook.Agent`. A step is a turn, and a command a call of a tool.

  defp chunks({:turn, _number}, answer) do
    {closed, answer} = close_step(answer)
    {closed ++ [%{type: "start-step"}], %{answer | step?: true}}
  end

  defp chunks({:text, text}, %{text: nil} = answer) do
    {id, answer} = id(answer, "text")
    more = %{type: "text-delta", id: id, delta: text}
    {[%{type: "text-start", id: id}, more], %{answer | text: id}}
  end

  defp chunks({:text, text}, answer),
    do: {[%{type: "text-delta", id: answer.text, delta: text}], answer}

  defp chunks({:command, line}, answer) do
    {closed, answer} = close_text(answer)
    {call, answer} = id(answer, "call")
    {closed ++ call_chunks(call, line), %{answer | calls: answer.calls ++ [{call, line}]}}
  end

  defp chunks({:result, result}, answer) do
    {closed, answer} = close_text(answer)
    line = result.command || ""

    # Lines of a block that is closed later have no call yet.
    {call, new, answer} =
      case List.keyfind(answer.calls, line, 1) do
        {call, _line} ->
          {call, [], %{answer | calls: List.keydelete(answer.calls, call, 0)}}

        nil ->
          {call, answer} = id(answer, "call")
          {call, call_chunks(call, line), answer}
      end

    {closed ++ new ++ [output(call, result) | waiting(result)], answer}
  end

  defp chunks({:handed_over, details}, answer),
    do: {[%{type: "data-handOver", data: details}], answer}

  defp chunks(_other, answer), do: {[], answer}

  defp call_chunks(call, line) do
    [name | _] = String.split(line, ~r/\s/, parts: 2)
    name = if name == "", do: "command", else: String.slice(name, 0, @max_name)
    start = %{type: "tool-input-start", toolCallId: call, toolName: name, dynamic: true}
    [start, Map.merge(start, %{type: "tool-input-available", input: %{command: line}})]
  end

  defp output(call, %Result{status: status, content: content})
       when status in [:error, :skipped],
       do: failed(call, content)

  defp output(call, %Result{content: content}),
    do: %{type: "tool-output-available", toolCallId: call, output: content, dynamic: true}

  defp failed(call, text),
    do: %{type: "tool-output-error", toolCallId: call, errorText: text, dynamic: true}

  defp waiting(%Result{metadata: metadata}) do
    for approval <- Map.get(metadata, :pending, []) do
      data = %{
        ref: approval.ref,
        name: approval.name,
        expiresAt: DateTime.to_iso8601(approval.expires_at)
      }

      %{type: "data-approval", id: approval.ref, data: data}
    end
  end

  defp close_step(answer) do
    {closed, answer} = close_text(answer)
    not_run = for {call, _line} <- answer.calls, do: failed(call, @not_run)
    finished = if answer.step?, do: [%{type: "finish-step"}], else: []
    {closed ++ not_run ++ finished, %{answer | calls: [], step?: false}}
  end

  defp close_text(%{text: nil} = answer), do: {[], answer}

  defp close_text(%{text: id} = answer),
    do: {[%{type: "text-end", id: id}], %{answer | text: nil}}

  defp id(%{next: next} = answer, kind), do: {"#{kind}-#{next}", %{answer | next: next + 1}}
end
