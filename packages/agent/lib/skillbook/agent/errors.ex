defmodule Skillbook.DispatchError do
  @moduledoc """
  Returned when `agent.dispatch` cannot start an agent, or the agent did not finish.

  ## Fields

    * `:kind` - the reason:
      * `:no_run` - the command is not part of a run of `Skillbook.Agent`
      * `:depth` - agents are nested as deep as `:max_depth` allows
      * `:handed_on` - `agent.dispatch` is among the skills, but `:max_depth` would not allow the
        agent to use it
      * `:limit` - too little of the run's `:limit` is left
      * `:ended` - the agent ran, but did not finish
    * `:max_depth` - for `:depth` and `:handed_on`, how many agents may be nested
    * `:limit` - for `:limit`: `:turns`, `:time`, `:tokens` or `:cost`
    * `:status` - for `:ended`, the status of its `Skillbook.Agent.Result`
    * `:text` - for `:ended`, a report of the agent's work, for the model

  ## Examples

      iex> error = %Skillbook.DispatchError{kind: :limit, limit: :turns}
      iex> error |> Exception.message() |> String.split(". ") |> hd()
      "`agent.dispatch` was not run: this run has too few turns left"
  """

  @type t :: %__MODULE__{
          kind: :no_run | :depth | :handed_on | :limit | :ended,
          max_depth: pos_integer() | nil,
          limit: :turns | :time | :tokens | :cost | nil,
          status: Skillbook.Agent.Result.status() | nil,
          text: String.t() | nil
        }

  @enforce_keys [:kind]
  defexception [:kind, :max_depth, :limit, :status, :text]

  @impl true
  def message(%{kind: :no_run}) do
    "`agent.dispatch` was not run: it needs a model, and this command is not part of a run " <>
      "that has one. Do it yourself. Runs with a model: `Skillbook.Agent.run/3` and " <>
      "`skillbook chat`"
  end

  def message(%{kind: :depth, max_depth: 0}) do
    "`agent.dispatch` was not run: this run may dispatch no agents. Do it yourself, or tell " <>
      "the user what remains to be done"
  end

  def message(%{kind: :depth, max_depth: max}) do
    "`agent.dispatch` was not run: you are an agent yourself, and #{nested(max)} may be " <>
      "nested. Do it with your own commands, or say what is left to do"
  end

  def message(%{kind: :handed_on, max_depth: max}) do
    "`agent.dispatch` was not run: the agent could not use agent.dispatch itself, since " <>
      "#{nested(max)} may be nested. Leave agent.dispatch out of --skills"
  end

  def message(%{kind: :limit, limit: limit}) do
    left = Map.get(%{time: "too little time", cost: "no budget"}, limit, "too few #{limit}")

    "`agent.dispatch` was not run: this run has #{left} left. Tell the user what is done and " <>
      "what is not"
  end

  def message(%{kind: :ended, text: text}), do: text

  defp nested(1), do: "no more than 1 agent"
  defp nested(max), do: "no more than #{max} agents"
end

defmodule Skillbook.HandOverError do
  @moduledoc """
  Returned when a conversation is not handed over to another profile.

  ## Fields

    * `:kind` - the reason:
      * `:no_run` - the command is not part of a run of `Skillbook.Agent`
      * `:workflow` - it is a step of a workflow
      * `:closed` - the run has no `:hand_over`
      * `:unknown` - the `:profile` is not in it; `:reason` has those that are
      * `:leads` - the `:profile` leads the conversation already
      * `:limit` - the run was handed over as often as may be, `:max`
      * `:profile` - the `:profile` does not exist, or cannot lead this conversation; `:reason`
        is the `Skillbook.ProfileError`

  ## Examples

      iex> Exception.message(%Skillbook.HandOverError{kind: :leads, profile: "billing"})
      "billing leads the conversation already. Answer the user yourself"
  """

  @type t :: %__MODULE__{
          kind: :no_run | :workflow | :closed | :unknown | :leads | :limit | :profile,
          profile: String.t() | nil,
          max: pos_integer() | nil,
          reason: [String.t()] | Skillbook.ProfileError.t() | nil
        }

  alias Skillbook.Support.Count

  @enforce_keys [:kind]
  defexception [:kind, :profile, :max, :reason]

  @impl true
  def message(%{kind: :no_run}) do
    "the conversation was not handed over: this command is not part of a run with a model. " <>
      "Runs with a model: `Skillbook.Agent.run/3` and `skillbook chat`"
  end

  def message(%{kind: :workflow}) do
    "the conversation was not handed over: a step of a workflow cannot do it. Call " <>
      "`agent.hand_over` yourself"
  end

  def message(%{kind: :closed}) do
    "the conversation was not handed over: this run may not do it. Answer the user yourself, " <>
      "or say what you cannot do"
  end

  def message(%{kind: :unknown, profile: profile, reason: profiles}) do
    "the conversation was not handed over: expected one of the profiles " <>
      "#{Enum.join(profiles, ", ")}, got: #{inspect(profile, printable_limit: 100)}"
  end

  def message(%{kind: :leads, profile: profile}),
    do: "#{profile} leads the conversation already. Answer the user yourself"

  def message(%{kind: :limit, max: max}) do
    "the conversation was not handed over: that was done #{Count.text(max, "time")} already. " <>
      "Answer the user yourself, or say what you cannot do"
  end

  # Its reasons are for the application.
  def message(%{kind: :profile, profile: profile}) do
    "the conversation was not handed over: #{profile} cannot lead it. Answer the user " <>
      "yourself, or say what you cannot do"
  end
end

defmodule Skillbook.TranscriptError do
  @moduledoc """
  Returned for text that is not a valid transcript, and raised for a transcript of another
  profile.

  ## Fields

    * `:path` - the place in the JSON, for example `"messages[3].role"`; `nil` for all of it
    * `:expected` - the expected value, as text
    * `:got` - the actual value, as text

  ## Examples

      iex> error = %Skillbook.TranscriptError{path: "version", expected: "1", got: "2"}
      iex> Exception.message(error)
      "the transcript's version: expected 1, got: 2"

      iex> error = %Skillbook.TranscriptError{expected: "an object", got: "[]"}
      iex> Exception.message(error)
      "the transcript: expected an object, got: []"
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
