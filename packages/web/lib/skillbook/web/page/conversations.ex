defmodule Skillbook.Web.Page.Conversations do
  @moduledoc false
  # The stored conversations of agents, with each message and command. Only for operators: they
  # have everything that was said, also about entries that the profile no longer sees.

  import Skillbook.Web.Html, only: [tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Book
  alias Skillbook.SQL.Values
  alias Skillbook.Transcript.Conversations
  alias Skillbook.Web.Page.{Layout, Parts}

  @limit 200

  @doc "The newest conversations."
  def index(request, _values) do
    for_operators(request, fn ->
      book = Book.fetch!(book(request))

      last = field(request, "after", 100)
      last = if last != "", do: last

      # One more, to know whether there is a next page.
      with {:ok, found} <- Conversations.list(book, request.caller.profile, @limit + 1, last) do
        {shown, more} = Enum.split(found, @limit)
        stored = book.of_parts.conversations != false
        next = if more != [], do: List.last(shown).run
        data = %{stored: stored, conversations: Enum.map(shown, &times/1), next: next}

        reply(request, data, :activity, :conversations, "Conversations", fn ->
          list(request, data)
        end)
      end
    end)
  end

  @doc "A conversation with its messages and commands."
  def show(request, %{run: run}) do
    for_operators(request, fn ->
      book = Book.fetch!(book(request))

      with {:ok, conversation, parts} <- Conversations.fetch(book, request.caller.profile, run) do
        conversation = times(conversation)
        data = %{conversation: conversation, parts: parts}
        content = fn -> conversation(request, conversation, parts) end
        back = {"Conversations", Layout.path(request, ["conversations"])}
        reply(request, data, :activity, :conversations, "Conversation", content, back: back)
      else
        {:ok, nil} -> Layout.not_found(request)
        {:error, error} -> {:error, error}
      end
    end)
  end

  defp times(one),
    do: %{one | started_at: Values.time(one.started_at), ended_at: Values.time(one.ended_at)}

  defp list(_request, %{conversations: [], stored: false}) do
    Parts.empty([
      "This book does not store conversations. The option ",
      tag(:code, [], "conversations: []"),
      " stores them for 30 days."
    ])
  end

  defp list(request, %{conversations: []}),
    do: Parts.empty(request, "No agent has run yet.", {"Start a conversation", ["chat"]})

  defp list(request, %{conversations: conversations, next: next}) do
    [table(request, conversations), Parts.further(request, "conversations", next)]
  end

  defp table(request, conversations) do
    Parts.table(
      "Conversations, the newest first",
      ["Input", "Profile", "Tenant", "Began", "Took", "Turns", "Status"],
      for one <- conversations do
        title = if one.title == "", do: "(no input)", else: one.title

        [
          tag(:a, [href: Layout.path(request, ["conversations", one.run])], title),
          [one.profile, if(one.depth > 0, do: [" ", Parts.badge("dispatched", :plain)])],
          one.tenant || "–",
          Parts.time(one.started_at),
          took(one),
          Parts.number(one.turns),
          status(one.status)
        ]
      end
    )
  end

  defp took(%{ended_at: nil}), do: "–"

  # Times are stored in seconds.
  defp took(one) do
    case DateTime.diff(one.ended_at, one.started_at) do
      seconds when seconds > 0 -> "#{seconds} s"
      _less -> "less than 1 s"
    end
  end

  defp conversation(request, one, parts) do
    [
      Parts.facts([
        {"Profile", one.profile},
        {"Tenant", one.tenant},
        {"Began", Parts.time(one.started_at)},
        {"Took", took(one)},
        {"Turns", Parts.number(one.turns)},
        {"Status", status(one.status)}
      ]),
      tag(:h2, [], "Messages and commands"),
      if(parts == [],
        do: Parts.empty("Nothing is stored of it."),
        else: tag(:ol, [class: "steps"], Enum.map(parts, &part(request, &1)))
      )
    ]
  end

  defp part(request, %{kind: "command", content: content}) do
    name = content["name"]

    tag(:li, [class: "command"], [
      tag(:p, [], [
        tag(:code, [], content["command"] || ""),
        " ",
        status(content["status"] || ""),
        " ",
        tag(:span, [class: "help"], milliseconds((content["duration"] || 0) / 1000)),
        if(name, do: [" ", entry(request, name)])
      ]),
      folded("Result", content["content"] || "")
    ])
  end

  defp part(_request, %{content: content}) do
    kind = content["kind"] || "message"

    tag(:li, [class: "message #{class(kind)}"], [
      tag(:p, [], [
        tag(:strong, [], kind(kind)),
        if(content["error"] == true, do: [" ", Parts.badge("failed", :bad)])
      ]),
      if(kind in ~w(input reply),
        do: tag(:pre, [class: "result", tabindex: "0"], content["content"] || ""),
        else: folded("Text", content["content"] || "")
      ),
      for(
        %{"name" => name, "arguments" => arguments} <- list_of(content["tool_calls"]),
        do: tag(:p, [], tag(:code, [], "#{name} #{arguments}"))
      )
    ])
  end

  defp list_of(list) when is_list(list), do: list
  defp list_of(_other), do: []

  defp folded(_title, ""), do: nil

  defp folded(title, text) do
    lines = text |> String.split("\n") |> length()

    tag(:details, [], [
      tag(:summary, [], "#{title}, #{Parts.count(lines, "line", "lines")}"),
      tag(:pre, [class: "result", tabindex: "0"], text)
    ])
  end

  defp class(kind) when kind in ~w(input reply), do: kind
  defp class(_other), do: "other"

  defp kind("prompt"), do: "System prompt"
  defp kind("context"), do: "Sections of the application"
  defp kind("input"), do: "Input"
  defp kind("preloaded"), do: "Preloaded skills"
  defp kind("reply"), do: "Reply of the model"
  defp kind("report"), do: "Report to the model"
  defp kind("result"), do: "Result to the model"
  defp kind("news"), do: "Changed skills"
  defp kind("note"), do: "Note to the model"
  defp kind(_other), do: "Message"

  defp status(good) when good in ["done", "ok", "template", "help"], do: Parts.badge(good, :good)
  defp status(open) when open in ["running", "pending", "waiting"], do: Parts.badge(open, :info)
  defp status(bad), do: Parts.badge(bad, :bad)
end
