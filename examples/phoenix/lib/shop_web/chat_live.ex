defmodule ShopWeb.ChatLive do
  @moduledoc """
  A conversation as a page. It has no state of its own that would be lost: after a reload it is
  made again from the transcript, and goes on with the events of the turn that runs.
  """
  use Phoenix.LiveView

  alias Skillbook.Conversation

  @max_text 4_000

  @impl true
  def mount(_params, %{"chat" => id}, socket) do
    socket = assign(socket, id: id, chat: Shop.Chats.open(id), text: "", queued: [], error: nil)
    {:ok, socket |> put_messages(Conversation.transcript(socket.assigns.chat)) |> put_info()}
  end

  @impl true
  def render(assigns) do
    ~H"""
    <h1>Chat with the shop</h1>
    <ol id="messages" aria-live="polite">
      <li :for={{class, text} <- @messages} class={class}>{text}</li>
      <li :if={@text != ""} class="model">{@text}</li>
      <li :for={{_turn, text} <- @queued} class="user queued">{text}</li>
    </ol>
    <section :for={approval <- @info.pending} id={approval.ref} aria-label="Approval">
      <p>Somebody of the shop decides: <code>{approval.command}</code></p>
      <button phx-click="approve" phx-value-ref={approval.ref}>Approve</button>
      <button phx-click="deny" phx-value-ref={approval.ref}>Deny</button>
    </section>
    <p :if={@error} role="alert">{@error}</p>
    <p :if={@info.status == :running}>
      <span>The assistant is at work.</span> <button phx-click="stop">Stop</button>
    </p>
    <p :if={@info.status == :stopped}>
      <span>Stopped.</span> <button phx-click="continue">Continue</button>
    </p>
    <form id="say" phx-submit="say">
      <input name="text" aria-label="Message" autocomplete="off" maxlength="4000" required />
      <button>Send</button>
    </form>
    """
  end

  @impl true
  def handle_event("say", %{"text" => text}, socket) do
    text = String.trim(text)

    if text != "" and String.length(text) <= @max_text,
      do: {:noreply, result(socket, Conversation.say(chat(socket), text))},
      else: {:noreply, socket}
  end

  def handle_event("approve", %{"ref" => ref}, socket),
    do: {:noreply, result(socket, Conversation.approve(chat(socket), ref, by: "the shop"))}

  def handle_event("deny", %{"ref" => ref}, socket),
    do: {:noreply, result(socket, Conversation.deny(chat(socket), ref, by: "the shop"))}

  def handle_event("stop", _params, socket) do
    :ok = Conversation.stop(chat(socket))
    {:noreply, socket}
  end

  def handle_event("continue", _params, socket) do
    :ok = Conversation.continue(chat(socket))
    {:noreply, put_info(socket)}
  end

  # A conversation that was idle for long has ended; its transcript is in the database.
  defp chat(socket), do: Shop.Chats.open(socket.assigns.id)

  defp result(socket, {:ok, _turn}), do: socket |> assign(error: nil) |> put_info()
  defp result(socket, {:error, error}), do: assign(socket, error: Exception.message(error))

  @impl true
  def handle_info({:skillbook_conversation, _id, event}, socket),
    do: {:noreply, follow(event, socket)}

  def handle_info(_message, socket), do: {:noreply, socket}

  defp follow({:queued, turn, input}, socket),
    do: update(socket, :queued, &(&1 ++ [{turn, input}]))

  defp follow({:started, turn, _input}, socket),
    do: socket |> update(:queued, &List.keydelete(&1, turn, 0)) |> put_info()

  defp follow({:event, _turn, {:text, text}}, socket), do: update(socket, :text, &(&1 <> text))

  defp follow({:event, _turn, {:message, message}}, socket),
    do: socket |> assign(text: "") |> update(:messages, &(&1 ++ shown(message)))

  defp follow({:event, _turn, {:transcript, transcript}}, socket),
    do: put_messages(socket, transcript)

  defp follow({:event, _turn, _event}, socket), do: socket

  defp follow({:ended, _turn, {:error, error}}, socket),
    do: socket |> assign(error: text(error)) |> put_info()

  defp follow({:stopped, _turn}, socket) do
    socket
    |> assign(text: "")
    |> put_messages(Conversation.transcript(socket.assigns.chat))
    |> put_info()
  end

  defp follow(:idle, socket), do: socket
  defp follow(_event, socket), do: put_info(socket)

  defp text(error) when is_exception(error), do: Exception.message(error)
  defp text(_reason), do: "Something went wrong. Try again."

  defp put_info(socket), do: assign(socket, info: Conversation.info(socket.assigns.chat))

  defp put_messages(socket, transcript) do
    messages = if transcript, do: Enum.flat_map(transcript.messages, &shown/1), else: []
    assign(socket, messages: messages)
  end

  # The prompt and notes are for the model. The first line of a result is its status.
  defp shown(%{kind: :input, content: text}), do: [{"user", text}]
  defp shown(%{kind: :reply, content: ""}), do: []
  defp shown(%{kind: :reply, content: text}), do: [{"model", text}]

  defp shown(%{kind: :result, call: call, content: text}),
    do: [{"call", "#{call.name}: #{text |> String.split("\n") |> hd()}"}]

  # The result of an approval.
  defp shown(%{kind: :report, content: text}) when is_binary(text), do: [{"call", text}]
  defp shown(_message), do: []
end
