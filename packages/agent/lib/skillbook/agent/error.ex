defmodule Skillbook.BudgetError do
  @moduledoc """
  Why a run ended as `:over_budget`, in `:error` of its result.

  ## Fields

    * `:limit` - the option of the book's `:budget`: `:day`, `:tenant_day`, `:profile_day` or
      `:skill_day`
    * `:whose` - the tenant, the id of the profile or the name of the skill; `nil` for `:day`, and
      for runs without a tenant or a skill
    * `:max`, `:spent` - the limit, and what was spent since midnight in UTC

  ## Examples

      iex> error = %Skillbook.BudgetError{limit: :profile_day, whose: "ann", max: 2, spent: 2.03}
      iex> Exception.message(error)
      "the budget of the profile \\"ann\\" for today is used up: 2.03 of 2. It is renewed at " <>
        "midnight, UTC"
  """

  @type t :: %__MODULE__{
          limit: :day | :tenant_day | :profile_day | :skill_day,
          whose: String.t() | nil,
          max: number(),
          spent: float()
        }

  @enforce_keys [:limit, :max, :spent]
  defexception [:limit, :whose, :max, :spent]

  @impl true
  def message(error) do
    spent = Float.round(error.spent, 4)

    "the budget#{whose(error)} for today is used up: #{spent} of #{error.max}. It is renewed " <>
      "at midnight, UTC"
  end

  defp whose(%{limit: :day}), do: " of the book"
  defp whose(%{limit: :tenant_day, whose: nil}), do: " of runs without a tenant"
  defp whose(%{limit: :tenant_day, whose: tenant}), do: " of the tenant #{inspect(tenant)}"
  defp whose(%{limit: :profile_day, whose: id}), do: " of the profile #{inspect(id)}"
  defp whose(%{limit: :skill_day, whose: nil}), do: " of runs without a skill"
  defp whose(%{limit: :skill_day, whose: name}), do: " of the skill #{inspect(name)}"
end

defmodule Skillbook.AgentError do
  @moduledoc """
  Returned by `Skillbook.Agent.run/3` when the model failed, or the run lost its profile, its book
  or its database.

  ## Fields

    * `:error` - the failure of the model, a `Skillbook.ModelError`; or
      * a `Skillbook.ProfileError`, if the application had no profile for the next turn
      * a `Skillbook.StoppedError`, if the book stops or has stopped
      * a `Skillbook.SQL.Error`, if the book's database has ended
      * a `Skillbook.RunError`, if a durable run was stopped, continued elsewhere, became too
        large for its journal, or another one of its conversation has not ended
    * `:result` - the `Skillbook.Agent.Result` up to the failure. Its `:transcript` has all turns
      before it and can be continued

  ## Examples

      iex> {:ok, _pid} = Skillbook.start_link(name: :agent_error, builtins: ["memory"])
      iex> error = %Skillbook.ModelError{kind: :timeout, reason: "no answer within 5 s"}
      iex> model = Skillbook.Model.Function.new(fn _messages, _options -> {:error, error} end)
      iex> {:error, error} = Skillbook.Agent.run(:agent_error, "Hi", model: model)
      iex> Exception.message(error)
      "the run ended in turn 1: the model took too long: no answer within 5 s"
      iex> Enum.map(error.result.transcript.messages, & &1.kind)
      [:prompt, :input]
  """

  @type t :: %__MODULE__{
          error:
            Skillbook.ModelError.t()
            | Skillbook.ProfileError.t()
            | Skillbook.StoppedError.t()
            | Skillbook.SQL.Error.t()
            | Skillbook.RunError.t(),
          result: Skillbook.Agent.Result.t()
        }

  @enforce_keys [:error, :result]
  defexception [:error, :result]

  @impl true
  def message(%{error: error, result: result}),
    do: "the run ended in turn #{result.turns}: #{Exception.message(error)}"
end

defmodule Skillbook.RunError do
  @moduledoc """
  Why a durable run of an agent cannot go on.

  ## Fields

    * `:kind` - the cause:
      * `:off` - the book has no option `:durable`
      * `:unknown` - there is no such run
      * `:running` - another process or node runs it
      * `:busy` - it has not ended, and another one of its conversation cannot begin
      * `:ended` - it has ended, with the `:status`
      * `:lost` - it was stopped, or another process or node continues it
      * `:too_large` - its conversation is too large for the journal
      * `:model` - there is no model to continue it with
      * `:profile` - its `:profile` is gone
      * `:unreadable` - its journal cannot be read
      * `:attempts` - it was continued as often as may be, `:max`
    * `:ref` - that of the run

  ## Examples

      iex> Exception.message(%Skillbook.RunError{kind: :ended, ref: "r1", status: :done})
      "the run r1 has ended already (done)"
  """

  @type t :: %__MODULE__{
          kind:
            :off
            | :unknown
            | :running
            | :busy
            | :ended
            | :lost
            | :too_large
            | :model
            | :profile
            | :unreadable
            | :attempts,
          ref: String.t() | nil,
          status: atom(),
          profile: String.t() | nil,
          max: pos_integer() | nil
        }

  alias Skillbook.Support.Count

  @enforce_keys [:kind, :ref]
  defexception [:kind, :ref, :status, :profile, :max]

  @impl true
  def message(%{kind: :off}),
    do: "the book keeps no durable runs; give it the options store: … and durable: true"

  def message(%{kind: :unknown, ref: ref}), do: "no durable run has the ref #{inspect(ref)}"
  def message(%{kind: :running, ref: ref}), do: "the run #{ref} is running now"

  def message(%{kind: :busy, ref: ref}) do
    "the run #{ref} of the same conversation has not ended; wait for it, continue it or stop it"
  end

  def message(%{kind: :ended, ref: ref, status: status}),
    do: "the run #{ref} has ended already (#{status})"

  def message(%{kind: :lost, ref: ref}),
    do: "the run #{ref} was stopped, or is continued by another process; it does not go on here"

  def message(%{kind: :too_large, ref: ref}) do
    "the conversation of the run #{ref} is too large for its journal; give the run a " <>
      ":max_context, or durable: false"
  end

  def message(%{kind: :model, ref: ref}) do
    "the run #{ref} needs a model; give the book agent: [model: …], or the option :model here"
  end

  def message(%{kind: :profile, ref: ref, profile: profile}),
    do:
      "the run #{ref} was not continued: its profile #{inspect(profile)} does not exist any more"

  def message(%{kind: :unreadable, ref: ref}) do
    "the run #{ref} was not continued: its journal cannot be read by this release; continue " <>
      "it with the release that wrote it, or stop it"
  end

  def message(%{kind: :attempts, ref: ref, max: max}) do
    "the run #{ref} was given up: it was continued #{Count.text(max, "time")}, and each time " <>
      "its process or node ended before it did"
  end
end

defmodule Skillbook.ConversationError do
  @moduledoc """
  Returned by `Skillbook.Conversation`.

  ## Fields

    * `:kind` - `:full`, as many inputs wait as may; `:stopped`, the turn was stopped; `:crashed`,
      its process crashed, with the `:reason`
    * `:id` - of the conversation
    * `:max` - for `:full`, how many may wait

  ## Examples

      iex> Exception.message(%Skillbook.ConversationError{kind: :full, id: "c-17", max: 10})
      "the conversation \\"c-17\\" has 10 inputs that wait already; say it again later"
  """

  @type t :: %__MODULE__{
          kind: :full | :stopped | :crashed,
          id: String.t(),
          max: pos_integer() | nil,
          reason: term()
        }

  @enforce_keys [:kind, :id]
  defexception [:kind, :id, :max, :reason]

  @impl true
  def message(%{kind: :full} = error) do
    "the conversation #{inspect(error.id)} has #{error.max} inputs that wait already; say it " <>
      "again later"
  end

  def message(%{kind: :stopped} = error),
    do: "the turn of the conversation #{inspect(error.id)} was stopped"

  def message(%{kind: :crashed} = error),
    do: "the turn of the conversation #{inspect(error.id)} crashed; the log has the reason"
end
