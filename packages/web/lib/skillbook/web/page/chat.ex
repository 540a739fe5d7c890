defmodule Skillbook.Web.Page.Chat do
  @moduledoc false
  # A conversation with the book's model, as the agent runs in production, and beside it what the
  # model got: the tokens of each part, the skills that were loaded and read, the system prompt.
  # A call that waits for an approval is decided in its place, by operators.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.{Book, Extractor, Part, Prompt, View}
  alias Skillbook.Web.{Caller, Markdown, Request, Response}
  alias Skillbook.Web.Page.{Approvals, Chats, Layout, Parts}

  # Conversations that are listed.
  @max_listed 20

  @doc "The field for the first text, and the conversations of the caller."
  def index(request, _values), do: index(request, "", nil)

  defp index(request, text, error) do
    chats = request |> own(&Chats.list/1, []) |> Enum.take(@max_listed)
    data = %{chats: Enum.map(chats, &Map.take(&1, [:id, :title, :status])), error: error}

    content = fn ->
      [
        if(Chats.model(Book.fetch!(book(request))) == nil,
          do: without_model(request),
          else: form(request, ["chat"], text, "Ask what a user would ask")
        ),
        Parts.live("chats", "chat", listed(request, chats))
      ]
    end

    reply(request, data, :try, :chat, "Conversation", content, failed(error))
  end

  # Those of another profile are its own, also for an operator who sees the book as it.
  defp own(request, fun, none),
    do: if(Layout.writes?(request), do: fun.(request.caller), else: none)

  defp failed(nil), do: []
  defp failed(error), do: [errors: Parts.failure(error), status: 422]

  defp without_model(request) do
    Parts.empty([
      tag(:strong, [], "No model is configured"),
      tag(:p, [], [
        "The option ",
        tag(:code, [], "agent: [model: …]"),
        " gives the book one, and ",
        tag(:code, [], "--model"),
        " does on the command line. Commands run without one."
      ]),
      tag(:a, [class: "button", href: Layout.path(request, ["try"])], "Try a command")
    ])
  end

  defp listed(_request, []), do: nil

  defp listed(request, chats) do
    rows =
      for chat <- chats do
        tag(:li, [], [
          tag(:span, [class: "need-text"], [
            tag(:a, [href: Layout.path(request, ["chat", chat.id])], chat.title)
          ]),
          status(chat)
        ])
      end

    section("recent", "Recent", tag(:ul, [class: "needs"], rows))
  end

  defp status(%{status: :running}), do: Parts.badge("answering", :info)
  defp status(%{status: :pending}), do: Parts.badge("waits", :warn)
  defp status(%{status: :done}), do: nil
  defp status(%{status: status}), do: Parts.badge(to_string(status), :bad)

  @doc "Begins a conversation."
  def create(request, _values) do
    with_form(request, fn fields ->
      text = text(fields["text"])

      case Chats.begin(request.caller, text) do
        {:ok, chat} -> Response.redirect(303, Layout.path(request, ["chat", chat.id]))
        {:error, error} -> index(request, text, error)
      end
    end)
  end

  @doc "A conversation."
  def show(request, %{id: id}) do
    case own(request, &Chats.fetch(&1, id), :error) do
      {:ok, chat} -> show(request, chat, "", nil)
      :error -> Layout.not_found(request)
    end
  end

  @doc "Says something more, stops the answer, or decides about a call."
  def update(request, %{id: id}) do
    with_form(request, fn fields ->
      case Chats.fetch(request.caller, id) do
        {:ok, chat} -> update(request, chat, fields)
        :error -> Layout.not_found(request)
      end
    end)
  end

  defp update(request, chat, %{"action" => "stop"}) do
    :ok = Chats.stop(request.caller, chat)
    back(request, chat)
  end

  defp update(request, chat, %{"decision" => decision, "ref" => ref})
       when is_binary(ref) and decision in ["yes", "no"] do
    for_operators(request, fn ->
      with true <- ref in chat.pending,
           {:ok, approval} <- Approvals.fetch(request, ref),
           :ok <- Approvals.check_tenant(request, approval) do
        operation = Part.operation(if(decision == "yes", do: :approve, else: :deny))
        {book, by} = {book(request), Caller.by(request.caller)}
        decide = fn options -> operation.run.(book, ref, by: by, resume: resume(options)) end
        told(request, chat, Chats.decide(request.caller, chat, ref, decide), "")
      else
        _none -> Layout.not_found(request)
      end
    end)
  end

  defp update(request, chat, fields) do
    text = text(fields["text"])
    told(request, chat, Chats.say(request.caller, text, chat), text)
  end

  # The call has its own way to ask.
  defp resume(options), do: Keyword.delete(options, :ask)

  defp told(request, chat, {:ok, _chat}, _text), do: back(request, chat)
  defp told(request, chat, {:error, error}, text), do: show(request, chat, text, error)

  defp back(request, chat),
    do: Response.redirect(303, Layout.path(request, ["chat", chat.id]))

  defp with_form(request, fun) do
    if Layout.writes?(request) do
      case Request.form(request) do
        {:ok, fields} -> fun.(fields)
        :error -> Layout.failed(request, 400, "The form could not be read.")
      end
    else
      Layout.failed(request, 403, "You see the book as another profile. Leave that view first.")
    end
  end

  defp text(text) when is_binary(text), do: text
  defp text(_other), do: ""

  # The page

  defp show(request, chat, text, error) do
    messages = Chats.messages(chat)

    data = %{
      id: chat.id,
      status: chat.status,
      error: error || chat.error,
      pending: chat.pending,
      usage: chat.usage,
      tokens: Map.new(parts(chat, messages)),
      read: named(request, read(messages)),
      picks: named(request, Enum.map(chat.picks, & &1.name)),
      messages: for(one <- messages, do: Map.take(one, [:kind, :content, :at, :error]))
    }

    content = fn ->
      tag(:div, [class: "chat"], [
        tag(:section, [aria_label: "Conversation"], [
          Parts.live("chat", ["chat", "approvals"], [
            talk(request, chat, messages),
            if(chat.status == :running, do: waiting(request, chat))
          ]),
          form(request, ["chat", chat.id], text, "Go on")
        ]),
        Parts.live("seen", "chat", seen(request, chat, messages, data))
      ])
    end

    options = [
      back: {"Conversations", Layout.path(request, ["chat"])},
      actions: tag(:a, [class: "button", href: Layout.path(request, ["chat"])], "New"),
      head: if(chat.status == :running, do: refresh())
    ]

    reply(request, data, :try, :chat, chat.title, content, options ++ failed(error))
  end

  # Without script the page looks again by itself.
  defp refresh,
    do: tag(:noscript, [], tag(:meta, http_equiv: "refresh", content: "2"))

  defp form(request, path, text, label) do
    if Layout.writes?(request) do
      Parts.form(
        request,
        path,
        [
          tag(:label, [for: "text", class: "hidden"], label),
          tag(
            :textarea,
            [
              id: "text",
              name: "text",
              rows: "3",
              required: true,
              maxlength: Chats.max_input(),
              placeholder: label,
              data_send: true
            ],
            text
          ),
          tag(:button, [type: "submit", class: "primary"], "Send")
        ],
        class: "say"
      )
    else
      tag(:p, [class: "help"], "The model answers your own profile. Leave this view first.")
    end
  end

  defp waiting(request, chat) do
    tag(:div, [class: "working"], [
      tag(:p, [role: "status"], "The model is answering"),
      Parts.button(request, ["chat", chat.id], "Stop", fields: [action: "stop"], class: "quiet")
    ])
  end

  defp talk(request, chat, messages) do
    said = if chat.input, do: [bubble("You", "input", chat.input)], else: []

    [
      tag(:ol, [class: "talk"], [
        Enum.map(messages, &message/1),
        said,
        chat.live |> Enum.reverse() |> Enum.map(&live/1),
        # Nothing is decided while the answer to a decision comes.
        for(ref <- chat.pending, chat.status != :running, do: pending(request, chat, ref)),
        stopped(chat)
      ])
    ]
  end

  defp message(%{kind: :prompt}), do: nil
  defp message(%{kind: :input, content: text}), do: bubble("You", "input", text)

  defp message(%{kind: :reply} = reply) do
    {text, commands} =
      case Extractor.extract(reply.content) do
        {:ok, %{commands: commands, text: text}} -> {text, commands}
        {:error, _error} -> {reply.content, []}
      end

    calls = for call <- reply.tool_calls, do: "#{call.name} #{call.arguments}"
    commands = for line <- commands ++ calls, do: tag(:code, [class: "call"], line)

    if String.trim(text) != "" or commands != [] do
      tag(:li, [class: "reply"], [
        tag(:strong, [], "Model"),
        if(String.trim(text) != "", do: tag(:div, [class: "said"], Markdown.html(text, ""))),
        commands
      ])
    end
  end

  defp message(%{kind: kind, content: text}), do: folded(kind(kind), text)

  defp bubble(who, class, text),
    do: tag(:li, [class: class], [tag(:strong, [], who), tag(:div, [class: "said plain"], text)])

  defp folded(title, text) do
    tag(:li, [class: "aside"], [
      tag(:details, [], [
        tag(:summary, [], [title, " ", tag(:span, [class: "help"], tokens(Prompt.tokens(text)))]),
        tag(:pre, [class: "result", tabindex: "0"], text)
      ])
    ])
  end

  defp kind(kind) when kind in [:report, :result], do: "Result"
  defp kind(:preloaded), do: "Preloaded skills"
  defp kind(:context), do: "Sections of the application"
  defp kind(:news), do: "Changed skills"
  defp kind(_note), do: "Note to the model"

  defp live(%{text: text}),
    do:
      tag(:li, [class: "reply"], [
        tag(:strong, [], "Model"),
        tag(:div, [class: "said plain"], text)
      ])

  defp live(%{command: command, status: status}) do
    tag(:li, [class: "aside"], [
      tag(:code, [class: "call"], command),
      " ",
      Parts.badge(to_string(status), if(status == :error, do: :bad, else: :good))
    ])
  end

  # A call that waits, in its place.
  defp pending(request, chat, ref) do
    with {:ok, %{status: :pending} = approval} <- Approvals.fetch(request, ref) do
      tag(:li, [class: "decide"], [
        tag(:p, [], [Parts.badge("waits", :warn), " ", tag(:code, [], approval.command)]),
        decision(request, chat, approval)
      ])
    else
      {:ok, decided} ->
        tag(:li, [class: "aside"], [
          tag(:a, [href: Layout.path(request, ["approvals", ref])], ref),
          " #{decided.status}"
        ])

      {:error, _gone} ->
        nil
    end
  end

  defp decision(%{caller: %{operator?: true}} = request, chat, approval) do
    if Layout.writes?(request) and Approvals.check_tenant(request, approval) == :ok do
      Parts.form(
        request,
        ["chat", chat.id],
        [
          tag(:input, type: "hidden", name: "ref", value: approval.ref),
          for {value, text, class} <- [{"yes", "Approve", "primary"}, {"no", "Deny", nil}] do
            text = [text, tag(:span, [class: "hidden"], [" ", approval.ref])]
            tag(:button, [type: "submit", name: "decision", value: value, class: class], text)
          end
        ],
        class: "buttons"
      )
    end
  end

  defp decision(_request, _chat, _approval),
    do: tag(:p, [class: "help"], "An operator decides.")

  defp stopped(%{status: :running}), do: nil
  defp stopped(%{status: status, error: nil}) when status in [:done, :pending], do: nil

  defp stopped(chat) do
    text = chat.error || ended(chat.status)
    tag(:li, [class: "notice bad"], tag(:p, [], Parts.sentence(text)))
  end

  defp ended(:crashed), do: "The answer crashed; the log of the book has the reason"
  defp ended(status), do: "It ended before the answer: #{status}"

  # What the model saw

  defp seen(request, chat, messages, data) do
    parts = parts(chat, messages)
    total = parts |> Enum.map(&elem(&1, 1)) |> Enum.sum()

    tag(:section, [class: "saw", aria_labelledby: "saw"], [
      tag(:h2, [id: "saw"], "What the model saw"),
      tag(:p, [class: "help"], [tokens(total), ", estimated", counted(chat.usage)]),
      tag(
        :ul,
        [class: "parts"],
        for {part, count} <- parts, count > 0 do
          tag(:li, [], [
            tag(:span, [], part(part)),
            tag(:meter, [min: 0, max: max(total, 1), value: count, aria_hidden: "true"], ""),
            tag(:span, [class: "number"], Parts.number(count))
          ])
        end
      ),
      tag(:h3, [], "Pages read"),
      names(request, data.read, "None yet."),
      tag(:h3, [], "Loaded by the router"),
      names(request, data.picks, "None."),
      tag(:p, [], [
        tag(
          :a,
          [href: Layout.path(request, ["route"], request: question(messages, chat))],
          "See the route"
        )
      ]),
      for(
        %{kind: :prompt, content: text} <- messages,
        do:
          tag(:details, [], [
            tag(:summary, [], "The catalog in the system prompt"),
            tag(:pre, [class: "result", tabindex: "0"], text)
          ])
      )
    ])
  end

  defp counted(%{estimated: false} = usage),
    do: "; the server counted #{tokens(usage.prompt_tokens + usage.completion_tokens)}"

  defp counted(_usage), do: nil

  defp question(messages, chat) do
    inputs = for %{kind: :input, content: text} <- messages, do: text
    String.slice(chat.input || List.last(inputs) || "", 0, 500)
  end

  @parts [
    prompt: [:prompt],
    tools: [],
    skills: [:preloaded, :news],
    sections: [:context],
    results: [:report, :result],
    you: [:input],
    model: [:reply],
    notes: [:note]
  ]

  defp parts(chat, messages) do
    for {part, kinds} <- @parts do
      texts = for %{kind: kind, content: text} <- messages, kind in kinds, do: text
      count = texts |> Enum.map(&Prompt.tokens/1) |> Enum.sum()
      {part, if(part == :tools, do: chat.tools.tokens, else: count)}
    end
  end

  defp part(:prompt), do: "System prompt"
  defp part(:tools), do: "Tools"
  defp part(:skills), do: "Skills"
  defp part(:sections), do: "Sections"
  defp part(:results), do: "Results"
  defp part(:you), do: "You"
  defp part(:model), do: "Model"
  defp part(:notes), do: "Notes"

  defp read(messages),
    do: messages |> Enum.flat_map(& &1.activations) |> Enum.map(& &1.name) |> Enum.uniq()

  # An entry may have been hidden since it was read.
  defp named(request, names) do
    view = Caller.view(request)
    Enum.filter(names, &View.named?(view, &1))
  end

  defp names(_request, [], none), do: tag(:p, [class: "help"], none)

  defp names(request, names, _none),
    do: tag(:ul, [class: "plain"], for(name <- names, do: tag(:li, [], entry(request, name))))

  defp tokens(count), do: Parts.count(count, "token", "tokens")
end
