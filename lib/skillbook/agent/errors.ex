defmodule Skillbook.DispatchError do
  @moduledoc """
  An agent that could not be dispatched, or that ended before it was done.

  ## Fields

    * `:kind` - `:no_run` (the command is not part of a run of `Skillbook.Agent`), `:depth` (no further agent may be inside of
      this one), `:handed_on` (`agent.dispatch` is among the skills, but the agent could not use it), `:limit` (too little is
      left of the run) or `:ended` (it ran, but not to its end)
    * `:max_depth` - for `:depth` and `:handed_on`, how many runs may be inside of each other
    * `:limit` - for `:limit`, what is used up: `:turns`, `:time` or `:tokens`
    * `:status` - for `:ended`, that of the `Skillbook.Agent.Result`
    * `:text` - for `:ended`, what the agent did, for the model

  ## Examples

      iex> Exception.message(%Skillbook.DispatchError{kind: :no_run})
      "`agent.dispatch` was not run: it needs a model, and this command is not part of a run that has one. Do it yourself. Whoever runs the book gets such runs from `Skillbook.Agent.run/3` or `skillbook chat`"
  """

  @type t :: %__MODULE__{
          kind: :no_run | :depth | :handed_on | :limit | :ended,
          max_depth: pos_integer() | nil,
          limit: :turns | :time | :tokens | nil,
          status: Skillbook.Agent.Result.status() | nil,
          text: String.t() | nil
        }

  @enforce_keys [:kind]
  defexception [:kind, :max_depth, :limit, :status, :text]

  @impl true
  def message(%{kind: :no_run}) do
    "`agent.dispatch` was not run: it needs a model, and this command is not part of a run that has one. Do it yourself. " <>
      "Whoever runs the book gets such runs from `Skillbook.Agent.run/3` or `skillbook chat`"
  end

  def message(%{kind: :depth, max_depth: 0}),
    do:
      "`agent.dispatch` was not run: this run may dispatch no agents. Do it yourself, or tell the user what is to be done"

  def message(%{kind: :depth, max_depth: max}) do
    "`agent.dispatch` was not run: you are an agent yourself, and #{nested(max)} may be inside of each other. " <>
      "Do it with your own commands, or say what is left to do"
  end

  def message(%{kind: :handed_on, max_depth: max}) do
    "`agent.dispatch` was not run: the agent could not use agent.dispatch itself, since #{nested(max)} may be inside " <>
      "of each other. Leave agent.dispatch out of --skills"
  end

  def message(%{kind: :limit, limit: limit}) do
    "`agent.dispatch` was not run: too little is left of this run's #{limit}. Tell the user what is done and what is not"
  end

  def message(%{kind: :ended, text: text}), do: text

  defp nested(1), do: "no more than 1 agent"
  defp nested(max), do: "no more than #{max} agents"
end

defmodule Skillbook.TranscriptError do
  @moduledoc """
  A text that is no transcript, or a transcript that cannot go on here.

  ## Fields

    * `:path` - the place in the JSON, such as `"messages[3].role"`; `nil` if it is the whole
    * `:expected` - what should be there
    * `:got` - what is there, as text

  ## Examples

      iex> Exception.message(%Skillbook.TranscriptError{path: "version", expected: "1", got: "2"})
      "the transcript's version: expected 1, got: 2"

      iex> Exception.message(%Skillbook.TranscriptError{expected: "one of the profile \\"bob\\"", got: "one of \\"ann\\""})
      "the transcript: expected one of the profile \\"bob\\", got: one of \\"ann\\""
  """

  @type t :: %__MODULE__{path: String.t() | nil, expected: String.t(), got: String.t()}

  @enforce_keys [:expected, :got]
  defexception [:path, :expected, :got]

  @impl true
  def message(%{path: nil} = error),
    do: "the transcript: expected #{error.expected}, got: #{error.got}"

  def message(error),
    do: "the transcript's #{error.path}: expected #{error.expected}, got: #{error.got}"
end
