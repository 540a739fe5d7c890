defmodule Skillbook.Agent.Settings do
  @moduledoc false
  # Validates the options of `Skillbook.Agent.run/3`, and the subset that a book takes as `:agent`
  # for non-interactive runs.

  alias Skillbook.Agent.{Budget, Output, Summary}
  alias Skillbook.Prompt.Sections
  alias Skillbook.Support.Options
  alias Skillbook.{Book, Model, OptionError, Preflight, Tools, Transcript}

  @book_options [
    :model,
    :system,
    :chat,
    :grammar,
    :protocol,
    :tools,
    :leader,
    :hand_over,
    :max_turns,
    :max_time,
    :max_tokens,
    :max_cost,
    :max_repeats,
    :max_context,
    :summary,
    :max_depth
  ]

  # Options that have options.
  @nested [:chat, :commands, :grammar, :preflight, :prompt, :summary, :tools]

  @doc """
  The options of a run with those of the book's `:agent` as defaults.

  A run inside another one has the options of that one.
  """
  @spec with_book(keyword(), Book.t()) :: keyword()
  def with_book(options, %Book{of_parts: %{agent: agent}}) do
    options = Options.keywords(options, @nested)
    if options[:parent], do: options, else: Keyword.merge(agent || [], options)
  end

  @doc "The options of a run as keyword lists."
  @spec options(Skillbook.options()) :: keyword()
  def options(options), do: Options.keywords(options, @nested)

  @doc "The options of the run's commands: `:commands`, and those that are options of a run too."
  @spec commands(keyword()) :: keyword()
  def commands(options) do
    Keyword.merge(options[:commands] || [], Keyword.take(options, [:assigns, :ask]))
  end

  @doc "The `:max_tokens` of `Skillbook.Agent.rehydrate/3`. Raises for other options."
  @spec rehydration!(keyword()) :: non_neg_integer()
  def rehydration!(options) do
    schema = [max_tokens: {"a whole number from 0", &(is_integer(&1) and &1 >= 0)}]

    with {:error, error} <- Options.validate(options, "the restored skills", schema),
         do: raise(error)

    Keyword.get(options, :max_tokens, 4_000)
  end

  @doc "Validates the options of a run."
  @spec validate_run(keyword()) :: :ok | {:error, OptionError.t()}
  def validate_run(options) do
    with :ok <- validate(options, "a run", schema()),
         :ok <- Preflight.Settings.validate(options[:preflight], "a run's :preflight"),
         {:ok, _sections} <- Sections.read(options[:sections] || [], "a run"),
         {:ok, _output} <- Output.read(options[:output]),
         do: :ok
  end

  @doc "Reads a book's `:agent`, which may be `nil`."
  @spec read_book(Skillbook.options() | nil) :: {:ok, keyword() | nil} | {:error, OptionError.t()}
  def read_book(nil), do: {:ok, nil}

  def read_book(options) do
    options = Options.keywords(options, @nested)
    schema = Keyword.take(schema(), @book_options)
    with :ok <- validate(options, "a book's :agent", schema), do: {:ok, options}
  end

  defp validate(options, subject, schema) do
    with :ok <- Options.validate(options, subject, schema),
         :ok <- Model.validate(options[:chat] || []),
         :ok <- validate_tools(options, subject),
         :ok <- validate_summary(options[:summary], subject) do
      if options[:model],
        do: :ok,
        else: {:error, %OptionError{subject: subject, option: :model, problem: :missing}}
    end
  end

  defp validate_summary([_ | _] = options, subject),
    do: Options.validate(options, "the :summary of #{subject}", Summary.options())

  defp validate_summary(_none, _subject), do: :ok

  # Tools that are not the view's would have nothing that runs them, and no server takes a grammar
  # beside tools.
  defp validate_tools(options, subject) do
    with :ok <- Options.validate(options[:tools] || [], "the :tools of #{subject}", tools()) do
      cond do
        given = Enum.find([:tools, :on_tool_call], &Keyword.has_key?(options[:chat] || [], &1)) ->
          expected = "no #{inspect(given)}, which the run sets,"
          {:error, invalid(subject, :chat, expected, options[:chat])}

        options[:protocol] == :tools and options[:grammar] != nil ->
          {:error, invalid(subject, :grammar, "nil beside protocol: :tools", options[:grammar])}

        true ->
          :ok
      end
    end
  end

  defp invalid(subject, option, expected, value),
    do: %OptionError{subject: subject, option: option, problem: {:invalid, expected, value}}

  defp tools, do: Keyword.take(Tools.options(), [:names, :limit, :form, :max_tokens])

  @doc """
  The protocol of a run: how its model calls commands.

  With `:auto` a model gets tools if its module says that it takes them.
  """
  @spec protocol(keyword()) :: :blocks | :tools
  def protocol(options) do
    case options[:protocol] || :auto do
      :auto ->
        if options[:grammar] == nil and Model.tools?(options[:model]), do: :tools, else: :blocks

      protocol ->
        protocol
    end
  end

  defp schema do
    positive = {"a whole number from 1", &Options.positive?/1}
    from_zero = {"a whole number from 0", &(is_integer(&1) and &1 >= 0)}
    positive_or_nil = {"a whole number from 1, or nil", &(is_nil(&1) or Options.positive?(&1))}

    [
      model: {"a model", &Model.model?/1},
      transcript: {"a transcript or nil", &(is_nil(&1) or is_struct(&1, Transcript))},
      system: {"text", &is_binary/1},
      prompt: {"a keyword list", &Keyword.keyword?/1},
      chat: {"a keyword list", &Keyword.keyword?/1},
      grammar: {"a keyword list or nil", &(is_nil(&1) or Keyword.keyword?(&1))},
      protocol: {":auto, :blocks or :tools", &(&1 in [nil, :auto, :blocks, :tools])},
      tools: {"a keyword list", &Keyword.keyword?/1},
      leader: {"the id of a profile or nil", &(is_nil(&1) or Options.text?(&1))},
      hand_over: {"a list of ids of profiles", &Options.texts?/1},
      preflight: {"a keyword list, false or nil", &(&1 in [nil, false] or Keyword.keyword?(&1))},
      sections: {"a list of sections or nil", &(is_nil(&1) or is_list(&1))},
      commands: {"a keyword list", &Keyword.keyword?/1},
      assigns: {"a map or a keyword list", &Options.assigns?/1},
      ask: {"a function of one argument, {module, function} or nil", &Book.Config.ask?/1},
      on_event:
        {"a function of one argument, a process or nil",
         &(is_nil(&1) or is_pid(&1) or is_function(&1, 1))},
      max_turns: positive,
      max_time: {"a number of milliseconds", &Options.milliseconds?/1},
      max_tokens: positive_or_nil,
      max_cost: {"a number above 0, or nil", &(is_nil(&1) or (is_number(&1) and &1 > 0))},
      max_repeats: positive,
      max_context: positive_or_nil,
      summary:
        {"a boolean, a keyword list or nil",
         &(is_nil(&1) or is_boolean(&1) or Keyword.keyword?(&1))},
      depth: from_zero,
      max_depth: from_zero,
      skill: {"the name of a skill or nil", &(is_nil(&1) or Options.text?(&1))},
      durable: {"a boolean, text or nil", &(is_nil(&1) or is_boolean(&1) or Options.text?(&1))},
      conversation: {"text or nil", &(is_nil(&1) or Options.text?(&1))},
      output: {"a JSON schema, a module of Skillbook.Skill or nil", &(is_map(&1) or is_atom(&1))},
      parent:
        {"the :parent of context.agent.options, or nil", &(is_nil(&1) or is_struct(&1, Budget))},
      clock: {"a function without arguments", &is_function(&1, 0)}
    ]
  end
end
