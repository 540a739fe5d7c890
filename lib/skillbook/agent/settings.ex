defmodule Skillbook.Agent.Settings do
  @moduledoc false
  # Validates the options of `Skillbook.Agent.run/3`, and the subset that a book takes as `:agent`
  # for non-interactive runs.

  alias Skillbook.Agent.Budget
  alias Skillbook.Support.Options
  alias Skillbook.{Model, OptionError, Preflight, Profile, Transcript}

  @book_options [
    :model,
    :system,
    :chat,
    :grammar,
    :max_turns,
    :max_time,
    :max_tokens,
    :max_repeats,
    :max_context,
    :max_depth
  ]

  @doc "Validates the options of a run."
  @spec validate_run(keyword()) :: :ok | {:error, OptionError.t()}
  def validate_run(options) do
    with :ok <- validate(options, "a run", schema()),
         do: Preflight.Settings.validate(options[:preflight], "a run's :preflight")
  end

  @doc "Validates a book's `:agent`, which may be `nil`."
  @spec validate_book(keyword() | nil) :: :ok | {:error, OptionError.t()}
  def validate_book(nil), do: :ok

  def validate_book(options),
    do: validate(options, "a book's :agent", Keyword.take(schema(), @book_options))

  defp validate(options, subject, schema) do
    with :ok <- Options.validate(options, subject, schema),
         :ok <- Model.validate(options[:chat] || []) do
      if options[:model],
        do: :ok,
        else: {:error, %OptionError{subject: subject, option: :model, problem: :missing}}
    end
  end

  defp schema do
    positive = {"a whole number from 1", &Options.positive?/1}
    from_zero = {"a whole number from 0", &(is_integer(&1) and &1 >= 0)}
    positive_or_nil = {"a whole number from 1, or nil", &(is_nil(&1) or Options.positive?(&1))}

    [
      model: {"a model", &Model.model?/1},
      profile: {"text or a profile", &(Options.text?(&1) or is_struct(&1, Profile))},
      transcript: {"a transcript or nil", &(is_nil(&1) or is_struct(&1, Transcript))},
      system: {"text", &is_binary/1},
      prompt: {"a keyword list", &Keyword.keyword?/1},
      chat: {"a keyword list", &Keyword.keyword?/1},
      grammar: {"a keyword list or nil", &(is_nil(&1) or Keyword.keyword?(&1))},
      preflight: {"a keyword list, false or nil", &(&1 in [nil, false] or Keyword.keyword?(&1))},
      commands: {"a keyword list", &Keyword.keyword?/1},
      on_event:
        {"a function of one argument, a process or nil",
         &(is_nil(&1) or is_pid(&1) or is_function(&1, 1))},
      max_turns: positive,
      max_time: {"a number of milliseconds", &Options.milliseconds?/1},
      max_tokens: positive_or_nil,
      max_repeats: positive,
      max_context: positive_or_nil,
      depth: from_zero,
      max_depth: from_zero,
      parent:
        {"the :parent of context.agent.options, or nil", &(is_nil(&1) or is_struct(&1, Budget))},
      clock: {"a function without arguments", &is_function(&1, 0)}
    ]
  end
end
