defmodule Skillbook.Agent.Leader do
  @moduledoc false
  # Decides which profile leads a conversation: the profile of the run, or one that it was handed
  # over to.
  #
  # The conversation stays with the profile of the run: its id, tenant, accounts, approvals and
  # budget. The profile that leads restricts it: a turn has the rights that both have. So a
  # hand-over never adds rights, and one back takes none away.

  alias Skillbook.Agent.State
  alias Skillbook.Book.Profiles
  alias Skillbook.Support.Hidden
  alias Skillbook.{Book, Context, Entry, HandOverError, OptionError, Profile, ProfileError}
  alias Skillbook.{Result, View}

  @command "agent.hand_over"
  # The most hand-overs of a run.
  @max 5
  # Characters of a reason.
  @max_reason 500

  @doc "The view of the profile that leads a conversation at the start of a run."
  @spec begin(State.t(), keyword()) :: State.t()
  def begin(state, options) do
    leader = state.transcript.leader
    first = options[:leader]
    leader = if leader in [first | state.hand_over], do: leader, else: first

    # Without one, the view of the run stays as it was given.
    if leader in [nil, own_id(state)],
      do: put_in(state.transcript.leader, nil),
      else: lead(put_in(state.transcript.leader, leader))
  end

  defp lead(%{book: nil} = state) do
    problem = {:invalid, "none for a view without a book,", state.transcript.leader}
    raise %OptionError{subject: "a run", option: :leader, problem: problem}
  end

  defp lead(state) do
    case profile(state) do
      {:ok, profile} -> %{state | view: View.of(state.book, profile)}
      {:error, error} -> raise error
    end
  end

  @doc "The profile of the next turn. The rights of an application's profile are those of now."
  @spec profile(State.t()) :: {:ok, Profile.t()} | {:error, ProfileError.t()}
  def profile(%{transcript: %{leader: leader}} = state),
    do: with({:ok, own} <- own(state), do: led(state.book, own, leader))

  defp own(%{profile: %Profile{} = profile}), do: {:ok, profile}
  defp own(%{profile: id, book: book}), do: fetch(book, id)

  defp own_id(%{profile: %Profile{id: id}}), do: id
  defp own_id(%{profile: id}), do: id

  defp fetch(book, id) do
    with :error <- Profiles.fetch(Book.fetch!(book), id),
         do: {:error, %ProfileError{book: book, id: id, kind: :unknown}}
  end

  defp led(_book, own, nil), do: {:ok, own}

  defp led(book, own, id) do
    with {:ok, leader} <- fetch(book, id),
         {:ok, leader} <- in_tenant(leader, own),
         {:ok, profile} <- Profile.meet(own, leader) do
      {:ok, profile}
    else
      {:error, %OptionError{} = error} ->
        {:error, %ProfileError{book: book, id: id, kind: :leader, reason: error}}

      error ->
        error
    end
  end

  # A profile without a tenant leads conversations of each one. That of a tenant leads none of
  # another, and none of those without one: `Profile.meet/2` would put these into its tenant.
  defp in_tenant(%{tenant: tenant} = leader, %{tenant: tenant}), do: {:ok, leader}
  defp in_tenant(leader, %{tenant: :all}), do: {:ok, %{leader | tenant: leader.tenant || :all}}

  defp in_tenant(%{tenant: tenant} = leader, own) when tenant in [nil, :all],
    do: {:ok, %{leader | tenant: own.tenant}}

  defp in_tenant(%{tenant: tenant}, own) do
    problem = {:invalid, "nil or the tenant of the conversation, #{inspect(own.tenant)},", tenant}
    {:error, %OptionError{subject: "a profile that leads", option: :tenant, problem: problem}}
  end

  @doc "The id of the profile that leads."
  @spec id(State.t()) :: String.t()
  def id(%{transcript: %{leader: leader}} = state), do: leader || own_id(state)

  # A hand-over

  @doc "`context.agent.hand_over`: checks whether a profile may lead the conversation."
  @spec check(State.t()) :: (String.t() -> :ok | {:error, HandOverError.t()})
  def check(state) do
    fn id ->
      cond do
        state.hand_over == [] -> {:error, %HandOverError{kind: :closed}}
        id not in state.hand_over -> error(:unknown, id, state.hand_over)
        id == id(state) -> error(:leads, id)
        state.hand_overs >= @max -> {:error, %HandOverError{kind: :limit, max: @max}}
        true -> may_lead(state, id)
      end
    end
  end

  defp may_lead(state, id) do
    case profile(put_leader(state, id)) do
      {:ok, _profile} -> :ok
      {:error, error} -> error(:profile, id, error)
    end
  end

  defp error(kind, id, reason \\ nil),
    do: {:error, %HandOverError{kind: kind, profile: id, reason: reason}}

  @doc "As `Skillbook.Agent.hand_over/3`."
  @spec hand_over(Context.t(), String.t(), String.t()) ::
          {:ok, Result.t()} | {:error, HandOverError.t()}
  def hand_over(%Context{agent: nil}, _id, _reason), do: {:error, %HandOverError{kind: :no_run}}

  # The result of a step is not that of the workflow.
  def hand_over(%Context{workflow: %{}}, _id, _reason),
    do: {:error, %HandOverError{kind: :workflow}}

  def hand_over(%Context{agent: agent}, id, reason) do
    with :ok <- agent.hand_over.(id) do
      text =
        "#{id} leads the conversation from your next reply on. Answer the user in its place, " <>
          "with its skills."

      hand_over = %{to: id, reason: String.slice(reason, 0, @max_reason)}
      {:ok, Result.ok(text, metadata: %{hand_over: hand_over})}
    end
  end

  @doc "Lets the profile lead that the last of the results names, if it may."
  @spec note(State.t(), [Result.t()]) :: State.t()
  def note(state, results) do
    asked =
      for %Result{status: :ok, metadata: %{hand_over: %{to: id} = asked}} <- results,
          check(state).(id) == :ok,
          do: asked

    case List.last(asked) do
      nil ->
        state

      %{to: id, reason: reason} ->
        State.emit(state, {:handed_over, %{from: id(state), to: id, reason: reason}})
        put_leader(%{state | hand_overs: state.hand_overs + 1}, id)
    end
  end

  defp put_leader(state, id) do
    leader = if id != own_id(state), do: id
    put_in(state.transcript.leader, leader)
  end

  # The prompt

  @doc "The profiles that the model may hand the conversation over to, for its prompt."
  @spec section(State.t()) :: String.t()
  def section(%{hand_over: []}), do: ""

  def section(state) do
    with {:ok, %Entry{}} <- View.fetch(state.view, @command),
         [_ | _] = lines <- lines(state) do
      how =
        if state.protocol == :tools, do: "agent__hand_over", else: "#{@command} PROFILE REASON"

      "## Profiles\n\nIf the request belongs to one of these, hand the conversation over with " <>
        "`#{how}`:\n\n" <> Enum.join(lines, "\n")
    else
      _none -> ""
    end
  end

  defp lines(state) do
    for id <- state.hand_over, id != id(state), {:ok, profile} <- [fetch(state.book, id)] do
      case profile.description do
        nil -> "- #{id}"
        text -> Hidden.visible("- #{id}: #{text |> String.split() |> Enum.join(" ")}")
      end
    end
  end
end
