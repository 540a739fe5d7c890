defmodule Skillbook.Web.Page.Try do
  @moduledoc false
  # Runs a command from a form that is made from its flags. The page shows the command line first,
  # and whether the policy lets it run; then it runs as the caller's own profile, through the same
  # checks as a model's command.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.{Book, Command, Declaration, Entry, Flag, Profile, View}
  alias Skillbook.Book.Cache
  alias Skillbook.Reply.Pipeline
  alias Skillbook.Run.Policy
  alias Skillbook.Web.{Caller, Request}
  alias Skillbook.Web.Page.{Layout, Parts}

  # Milliseconds that a command and the question about it may take: the server ends a request that
  # takes longer.
  @max_time 45_000
  @max_ask 20_000
  @max_value 100_000
  @page_size 100
  # Names that a form uses itself.
  @flag "flag-"

  @doc "The commands that the profile may call; with `q` those whose name has this text."
  def index(request, _values) do
    view = Caller.view(request)
    query = field(request, "q", 200)
    part = String.downcase(query)

    found = found(view, part)
    {page, pages, shown} = page_of(request, found.pages, 1)

    commands =
      for names <- shown,
          name <- :erlang.binary_to_term(names),
          entry = View.find(view, name),
          entry.user_invocable do
        %{
          name: entry.name,
          description: entry.description,
          effect: Entry.effect(entry),
          policy: policy(entry, view.profile)
        }
      end

    data = %{
      profile: view.profile.id,
      query: query,
      total: found.total,
      page: page,
      pages: pages,
      commands: commands
    }

    reply(request, data, :try, :try, "Command", fn -> commands(request, data) end)
  end

  # The names are listed once for each state of the view; a page reads its own commands, and
  # leaves out those that only models may call.
  defp found(view, part) do
    Cache.keep(view.book, {:invocable, View.state(view), part}, fn ->
      names = View.names(view, kind: :command)

      names =
        if part == "",
          do: names,
          else: Enum.filter(names, &String.contains?(String.downcase(&1), part))

      pages = names |> Enum.chunk_every(@page_size) |> Enum.map(&:erlang.term_to_binary/1)
      %{total: length(names), pages: pages}
    end)
  end

  defp commands(request, data) do
    [
      tag(:form, [method: "get", action: Request.path(request, ["try"]), class: "query"], [
        keep_as(request),
        tag(:label, [for: "q"], "Name"),
        tag(:input, type: "search", id: "q", name: "q", value: data.query, maxlength: 200),
        tag(:button, [type: "submit"], "Find")
      ]),
      Parts.live("commands", "skills", [
        list(request, data),
        Parts.pages(request, ["try"], query(data), data.page, data.pages)
      ])
    ]
  end

  defp query(%{query: ""}), do: %{}
  defp query(%{query: query}), do: %{"q" => query}

  defp list(request, %{commands: [], query: ""}),
    do: Parts.empty(request, "No commands yet.", {"Open the skills", ["skills"]})

  defp list(_request, %{commands: []}), do: Parts.empty("No command has a name with this text.")

  defp list(request, %{commands: commands}) do
    Parts.table(
      "Commands",
      ["Command", "Description", "Effect", "When it is called"],
      for command <- commands do
        [
          tag(:a, [href: Layout.path(request, ["try", command.name])], command.name),
          command.description,
          if(command.effect == :read, do: "reads", else: "writes"),
          answer(command.policy)
        ]
      end
    )
  end

  @doc "The form of a command."
  def form(request, %{name: name}),
    do: with_command(request, name, &show(request, &1, &2, %{}, nil, []))

  @doc "Shows the command line of a form, or runs it."
  def run(request, %{name: name}) do
    with_command(request, name, fn entry, declaration ->
      case Request.form(request) do
        {:ok, fields} -> run(request, entry, declaration, fields)
        :error -> Layout.failed(request, 400, "The form could not be read.")
      end
    end)
  end

  defp run(request, entry, declaration, fields) do
    values = for {@flag <> flag, value} <- fields, into: %{}, do: {flag, value}
    {command, errors} = command(entry, declaration, values, fields["arguments"])

    cond do
      errors != [] ->
        show(request, entry, declaration, fields, nil, errors)

      fields["step"] == "run" ->
        show(request, entry, declaration, fields, {command, result(request, entry, command)}, [])

      true ->
        show(request, entry, declaration, fields, {command, nil}, [])
    end
  end

  defp with_command(request, name, show) do
    view = Caller.view(request)

    with {:ok, %Entry{name: ^name, kind: :command, user_invocable: true} = entry} <-
           View.fetch(view, name),
         {:ok, declaration} <- View.flags(view, name) do
      show.(entry, declaration || %Declaration{words: true})
    else
      _hidden_or_other -> Layout.not_found(request)
    end
  end

  # From the form to the command

  defp command(entry, declaration, values, arguments) do
    {flags, errors} =
      Enum.reduce(declaration.flags, {%{}, []}, fn flag, {flags, errors} ->
        case value(flag, values[flag.name]) do
          :none -> {flags, errors}
          {:ok, value} -> {Map.put(flags, flag.name, value), errors}
          {:error, text} -> {flags, [{@flag <> flag.name, text} | errors]}
        end
      end)

    case arguments(declaration, arguments) do
      {:ok, args} ->
        line = Command.line(%Command{name: entry.name, raw: "", args: args, flags: flags})
        {line, Enum.reverse(errors)}

      {:error, text} ->
        {nil, Enum.reverse([{"arguments", text} | errors])}
    end
  end

  # The command itself checks the types, and says what it expects. So only values that cannot
  # become a part of a line are errors here.
  defp value(%Flag{type: :switch}, given), do: if(given == "1", do: {:ok, true}, else: :none)
  defp value(_flag, empty) when empty in [nil, ""], do: :none

  defp value(flag, text) when is_binary(text) do
    text = String.replace(text, "\r\n", "\n")

    cond do
      not String.valid?(text) ->
        {:error, "--#{flag.name}: expected text in UTF-8"}

      String.contains?(text, "\0") ->
        {:error, "--#{flag.name}: expected text without NUL"}

      byte_size(text) > @max_value ->
        {:error, "--#{flag.name}: expected at most #{Parts.number(@max_value)} bytes"}

      flag.several ->
        {:ok, several(text)}

      true ->
        {:ok, text}
    end
  end

  defp value(flag, _file_or_list), do: {:error, "--#{flag.name}: expected text"}

  defp several(text) do
    case text |> String.split("\n") |> Enum.map(&String.trim/1) |> Enum.reject(&(&1 == "")) do
      [one] -> one
      values -> values
    end
  end

  defp arguments(_declaration, empty) when empty in [nil, ""], do: {:ok, []}

  defp arguments(%{words: true}, text) when is_binary(text) do
    with {:error, error} <- Command.tokenize(text), do: {:error, Exception.message(error)}
  end

  defp arguments(_declaration, _text), do: {:error, "the command takes no other words"}

  defp result(request, entry, line) do
    view = Caller.view(request)
    book = Book.of!(view)
    limit = min(Map.get(entry.limits, :timeout, book.timeout), @max_time)
    asked = if book.ask_timeout == :infinity, do: @max_ask, else: min(book.ask_timeout, @max_ask)
    [result] = Pipeline.commands(view, [line], by: :user, timeout: limit, ask_timeout: asked)
    result
  end

  # The policy, as the executor will decide

  defp policy(entry, profile) do
    cond do
      entry.limits[:approval] == :required ->
        :asks

      not Policy.runs?(entry, profile) ->
        if(profile.writes == :deny, do: :denied, else: :delegated)

      Entry.effect(entry) == :read and not is_map_key(entry.limits, :approval) ->
        :runs

      Profile.approves?(profile, entry.name) ->
        :runs

      Entry.effect(entry) == :write and profile.writes == :ask ->
        :asks

      is_map_key(entry.limits, :approval) ->
        :may_ask

      true ->
        :runs
    end
  end

  defp answer(:runs), do: Parts.badge("runs", :good)
  defp answer(:asks), do: Parts.badge("asks first", :warn)
  defp answer(:may_ask), do: Parts.badge("may ask first", :warn)
  defp answer(:denied), do: Parts.badge("is refused", :bad)
  defp answer(:delegated), do: Parts.badge("only by agents", :warn)

  defp policy_text(:runs, _entry), do: "The policy lets it run."

  defp policy_text(:asks, %Entry{limits: %{approval: :required}}),
    do: "Its page has `approval: required`: a person is asked before it runs."

  defp policy_text(:may_ask, %Entry{limits: %{approval: flags}}) do
    flags = Enum.map_join(flags, ", ", &"--#{&1}")
    "Its page has `approval: [#{flags}]`: with such a flag, a person is asked before it runs."
  end

  defp policy_text(:asks, _entry),
    do: "It changes something, and the profile has `writes: ask`: a person is asked first."

  defp policy_text(:denied, _entry),
    do: "It changes something, and the profile has `writes: deny`: it will be refused."

  defp policy_text(:delegated, _entry),
    do: "It changes something, and the profile has `writes: delegate`: only an agent may run it."

  # The page

  defp show(request, entry, declaration, fields, tried, errors) do
    view = Caller.view(request)
    policy = policy(entry, view.profile)
    {line, result} = tried || {nil, nil}

    data = %{
      name: entry.name,
      profile: view.profile.id,
      policy: policy,
      flags: declaration.flags,
      command: line,
      errors: Enum.map(errors, &elem(&1, 1)),
      result: result && Map.take(result, [:status, :content, :duration, :effects])
    }

    content = fn ->
      [
        tag(:p, [], entry.description),
        tag(:p, [class: "policy"], [answer(policy), " ", policy_text(policy, entry)]),
        outcome(request, line, result),
        tag(:h2, [], "Flags"),
        if(declaration.error, do: tag(:p, [class: "error"], Parts.sentence(declaration.error))),
        inputs(request, entry, declaration, fields, errors)
      ]
    end

    reply(request, data, :try, :try, entry.name, content,
      back: {"Command", Layout.path(request, ["try"])},
      errors: problems(errors),
      status: if(errors == [], do: 200, else: 422)
    )
  end

  defp problems([]), do: nil

  defp problems(errors) do
    tag(:div, [class: "notice bad", role: "alert", tabindex: "-1", data_focus: true], [
      tag(:p, [], tag(:strong, [], "It has not run")),
      tag(
        :ul,
        [],
        for(
          {name, text} <- errors,
          do: tag(:li, [], tag(:a, [href: "#field-" <> id(name)], text))
        )
      )
    ])
  end

  defp outcome(_request, nil, _result), do: nil

  defp outcome(request, line, result) do
    tag(:section, [aria_labelledby: "outcome", class: "outcome"], [
      tag(
        :h2,
        [id: "outcome", tabindex: "-1", data_focus: true],
        if(result, do: "Result", else: "Command line")
      ),
      tag(:pre, [tabindex: "0"], tag(:code, [], line)),
      result(request, result)
    ])
  end

  defp result(_request, nil), do: nil

  defp result(request, result) do
    [
      tag(:p, [], [
        status(result.status),
        if(result.duration, do: " after #{milliseconds(result.duration / 1000)}")
      ]),
      tag(:pre, [class: "result", tabindex: "0"], result.content),
      waiting(request, result)
    ]
  end

  defp waiting(request, %{status: :pending, metadata: %{pending: approvals}}) do
    for approval <- approvals do
      href = Layout.path(request, ["approvals", approval.ref])
      tag(:p, [], tag(:a, [href: href], "The approval #{approval.ref} that it waits for"))
    end
  end

  defp waiting(_request, _result), do: nil

  defp status(:ok), do: Parts.badge("ok", :good)
  defp status(:template), do: Parts.badge("text of the page", :info)
  defp status(:help), do: Parts.badge("help", :info)
  defp status(:pending), do: Parts.badge("waits for an approval", :warn)
  defp status(status), do: Parts.badge(to_string(status), :bad)

  defp inputs(request, entry, declaration, fields, errors) do
    wrong = Map.new(errors)
    writes? = Layout.writes?(request)

    Parts.form(request, ["try", entry.name], [
      for(
        flag <- declaration.flags,
        do: input(flag, fields[@flag <> flag.name], wrong[@flag <> flag.name])
      ),
      if declaration.words do
        Parts.text_field("arguments", "Other words", text(fields["arguments"]),
          optional: true,
          error: wrong["arguments"],
          help: "Words without a flag. Quote those with spaces.",
          spellcheck: "false"
        )
      end,
      if(declaration.flags == [] and not declaration.words,
        do: tag(:p, [class: "help"], "The command takes no flags.")
      ),
      if writes? do
        tag(:div, [class: "actions"], [
          tag(
            :button,
            [type: "submit", name: "step", value: "show", class: "quiet"],
            "Show the command"
          ),
          tag(
            :button,
            [type: "submit", name: "step", value: "run", class: "primary"],
            "Run it"
          )
        ])
      else
        tag(:p, [class: "help"], "Commands run as your own profile. Leave this view first.")
      end
    ])
  end

  defp text(text) when is_binary(text), do: text
  defp text(_other), do: nil

  # Names of flags may have characters that an id must not have.
  defp id(name), do: String.replace(name, ~r/[^A-Za-z0-9_-]/, "_")

  defp input(%Flag{type: :switch} = flag, given, _error),
    do: Parts.checkbox(@flag <> flag.name, label(flag), given == "1")

  defp input(%Flag{several: false, type: :one_of} = flag, given, error) do
    items = [{"", "–"} | for(value <- flag.values, do: {value, value})]
    Parts.choice(@flag <> flag.name, "--" <> flag.name, text(given), items, options(flag, error))
  end

  defp input(%Flag{several: true} = flag, given, error) do
    options = options(flag, error)
    help = Enum.join(Enum.filter([options[:help], "One value on each line."], & &1), " ")

    Parts.text_area(
      @flag <> flag.name,
      "--" <> flag.name,
      text(given),
      Keyword.merge(options, help: help, rows: 3)
    )
  end

  defp input(%Flag{type: type} = flag, given, error) when type in [:integer, :number] do
    Parts.field(@flag <> flag.name, "--" <> flag.name, options(flag, error), fn attributes ->
      step = if type == :integer, do: "1", else: "any"

      tag(
        :input,
        [type: "number", value: text(given), min: flag.min, max: flag.max, step: step] ++
          attributes
      )
    end)
  end

  defp input(%Flag{type: type} = flag, given, error) when type in [:email, :url] do
    Parts.field(@flag <> flag.name, "--" <> flag.name, options(flag, error), fn attributes ->
      tag(:input, [type: Atom.to_string(type), value: text(given)] ++ attributes)
    end)
  end

  # A date may be a word, such as "tomorrow", and a time has an offset, which inputs of browsers
  # do not have.
  defp input(%Flag{type: :date, values: []} = flag, given, error) do
    Parts.field(@flag <> flag.name, "--" <> flag.name, options(flag, error), fn attributes ->
      tag(:input, [type: "date", value: text(given)] ++ attributes)
    end)
  end

  defp input(%Flag{type: :text, line: false} = flag, given, error),
    do:
      Parts.text_area(
        @flag <> flag.name,
        "--" <> flag.name,
        text(given),
        [rows: 3] ++ options(flag, error)
      )

  defp input(flag, given, error),
    do: Parts.text_field(@flag <> flag.name, "--" <> flag.name, text(given), options(flag, error))

  defp options(flag, error) do
    required? = flag.required and flag.default == []
    [help: help(flag), error: error, required: required?, optional: not required?]
  end

  defp label(flag),
    do: ["--", flag.name, if(flag.description != "", do: [": ", flag.description])]

  defp help(flag) do
    texts = [flag.description, expected(flag), default(flag)] |> Enum.reject(&(&1 in [nil, ""]))

    if texts != [], do: Enum.map_join(texts, " ", &Parts.sentence/1)
  end

  # Many descriptions say it.
  defp default(%{default: []}), do: nil

  defp default(flag),
    do: if(not (flag.description =~ "efault"), do: "Default: #{Enum.join(flag.default, ", ")}")

  defp expected(%{type: :date, values: [_ | _] = words}),
    do: "A date such as 2026-03-01, or #{Enum.join(words, ", ")}"

  defp expected(%{type: :datetime}), do: "A time such as 2026-03-01T08:00:00+01:00"
  defp expected(%{type: :json, structure: structure}), do: "JSON: #{structure}"
  defp expected(%{type: :text, pattern: pattern}) when pattern != nil, do: "Pattern: #{pattern}"

  defp expected(%{type: :one_of, several: true, values: values}),
    do: "Of #{Enum.join(values, ", ")}"

  defp expected(_flag), do: nil
end
