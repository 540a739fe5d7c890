defmodule Skillbook.Profile do
  @moduledoc """
  On whose behalf something is read or run.

  ## Options

    * `:id` - its id, which entries may name in `proactive_for_profile_ids` and `exclude_from_prompt_profile_ids`. Required
    * `:grants` - the visibility labels it may see, or `:all`; none if it is left out. An entry is seen if all of its
      labels are granted
    * `:skills` - globs over the names of the entries it may see, or `:all` (the default). Case matters, and `*` also
      matches dots
    * `:within` - lists of globs that narrow `:skills`: a name has to match one glob of each list; none (`[]`) by default.
      `narrow/2` adds to it
    * `:others` - the ids of others that it acts for as well: what is excluded for one of them is excluded for it. None (`[]`) by
      default; `meet/2` adds to it
    * `:tools` - the tools it may use, as patterns of `Skillbook.View.tools/2`, or `:all` (the default)
    * `:writes` - what becomes of a command that changes something (`Skillbook.Entry.effect/1`): `:run` (the default) runs
      it, `:delegate` tells the model to hand it to an agent, `:ask` asks the `:ask` callback of the run or the book, `:deny`
      refuses it
    * `:labels` - visibility labels that all it writes into the store carries besides those it gives; they are among its
      `:grants`. It can neither leave them out nor edit or delete an entry that lacks one of them. None (`[]`) by default
    * `:role` - the id of one of the book's `:roles`, which says what this list leaves out of `:grants`, `:skills`,
      `:tools`, `:writes` and `:labels`; `nil` (the default) for none. A profile that is made without a book only keeps it,
      and so does a struct

  ## Examples

      iex> {:ok, profile} = Skillbook.Profile.new(id: "mail", grants: ["external"], skills: ["email.*"])
      iex> {profile.grants, profile.tools}
      {["external"], :all}

      iex> {:error, error} = Skillbook.Profile.new(id: "mail", grants: "external")
      iex> Exception.message(error)
      "expected :all or a list of texts as the option :grants of a profile, got: \\"external\\""

      iex> {:error, error} = Skillbook.Profile.new(id: "mail", grants: ["external"], labels: ["external", "mail"])
      iex> Exception.message(error)
      "expected labels that are among its :grants as the option :labels of a profile, got: [\\"mail\\"]"
  """

  alias Skillbook.Support.Options
  alias Skillbook.{Native, OptionError}

  @type glob :: String.t()
  @type writes :: :run | :delegate | :ask | :deny
  @type t :: %__MODULE__{
          id: String.t(),
          others: [String.t()],
          grants: :all | [String.t()],
          skills: :all | [glob()],
          within: [[glob()]],
          tools: :all | [String.t()],
          writes: writes(),
          labels: [String.t()],
          role: String.t() | nil
        }

  @enforce_keys [:id]
  defstruct [
    :id,
    :role,
    others: [],
    grants: [],
    skills: :all,
    within: [],
    tools: :all,
    writes: :run,
    labels: []
  ]

  @typedoc "What the profiles of a role have in common, by the role's id."
  @type roles :: %{String.t() => keyword()}

  @doc "Makes a profile of options, or of a profile."
  @spec new(t() | keyword()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(options) do
    with {:ok, profile} <- read(options), do: consistent(profile)
  end

  @doc false
  # Whether it sees all that there is.
  @spec unrestricted?(t()) :: boolean()
  def unrestricted?(%__MODULE__{} = profile), do: profile.grants == :all and globs(profile) == []

  @doc false
  @spec new(t() | keyword(), roles()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(options, roles) do
    with {:ok, profile} <- read(options),
         {:ok, role} <- fetch_role(profile.role, roles) do
      if is_list(options), do: new(Keyword.merge(role, options)), else: new(profile)
    end
  end

  defp read(%__MODULE__{} = profile), do: {:ok, profile}

  defp read(options) do
    with :ok <- Options.validate(options, "a profile", schema()) do
      if Keyword.has_key?(options, :id),
        do: {:ok, struct!(__MODULE__, options)},
        else: {:error, %OptionError{subject: "a profile", option: :id, problem: :missing}}
    end
  end

  # Checked once the role is known, which may have the one or the other. A profile must see what it writes.
  defp consistent(profile) do
    case foreign(profile, profile.labels) do
      [] ->
        {:ok, profile}

      labels ->
        problem = {:invalid, "labels that are among its :grants", labels}
        {:error, %OptionError{subject: "a profile", option: :labels, problem: problem}}
    end
  end

  @doc false
  # Those of the labels that the profile does not hold.
  @spec foreign(t(), [String.t()]) :: [String.t()]
  def foreign(%__MODULE__{grants: :all}, _labels), do: []
  def foreign(%__MODULE__{grants: grants}, labels), do: Enum.reject(labels, &(&1 in grants))

  @doc false
  @spec roles([keyword()]) :: {:ok, roles()} | {:error, OptionError.t()}
  def roles(roles) do
    Enum.reduce_while(roles, {:ok, %{}}, fn role, {:ok, done} ->
      case role(role) do
        {:ok, {id, given}} -> {:cont, {:ok, Map.put(done, id, given)}}
        {:error, _} = error -> {:halt, error}
      end
    end)
  end

  defp role(options) do
    with :ok <- Options.validate(options, "a role", Keyword.delete(schema(), :role)),
         :error <- Keyword.pop(options, :id) |> named() do
      {:error, %OptionError{subject: "a role", option: :id, problem: :missing}}
    end
  end

  defp named({nil, _given}), do: :error
  defp named(role), do: {:ok, role}

  defp fetch_role(nil, _roles), do: {:ok, []}

  defp fetch_role(id, roles) do
    with :error <- Map.fetch(roles, id) do
      expected =
        if roles == %{},
          do: "nil, for the book has no :roles,",
          else: "one of the roles #{Enum.map_join(Map.keys(roles), ", ", &inspect/1)}"

      {:error,
       %OptionError{subject: "a profile", option: :role, problem: {:invalid, expected, id}}}
    end
  end

  @doc """
  The profile of trusted code, which sees and may use everything.

      iex> Skillbook.Profile.unrestricted().grants
      :all
  """
  @spec unrestricted() :: t()
  def unrestricted, do: %__MODULE__{id: "", grants: :all}

  @doc """
  The same profile with fewer skills: those that it may see and one of the globs names.

  Whatever the globs are, the result sees nothing that the profile does not. It keeps the id, so that entries treat both
  alike.

      iex> {:ok, profile} = Skillbook.Profile.new(id: "mail", skills: ["email.*"])
      iex> narrow = Skillbook.Profile.narrow(profile, ["*.search", "tasks.*"])
      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> {:ok, view} = Skillbook.View.new(catalog, narrow)
      iex> Enum.map(Skillbook.View.entries(view), & &1.name)
      ["email.search"]
  """
  @spec narrow(t(), [glob()]) :: t()
  def narrow(%__MODULE__{within: within} = profile, globs) when is_list(globs),
    do: %{profile | within: within ++ [globs]}

  @doc """
  The same profile with no more rights than another has as well.

  It keeps its id, and entries that exclude the other exclude it too. Of the patterns in `:tools` those are left that both have. It is an error if what it writes had to carry
  labels that it would not see.

      iex> {:ok, nightly} = Skillbook.Profile.new(id: "nightly", grants: ["mail", "money"])
      iex> {:ok, maria} = Skillbook.Profile.new(id: "maria", grants: ["mail"], skills: ["email.*"], writes: :deny)
      iex> {:ok, both} = Skillbook.Profile.meet(nightly, maria)
      iex> {both.id, both.others, both.grants, both.within, both.writes}
      {"nightly", ["maria"], ["mail"], [["email.*"]], :deny}
  """
  @spec meet(t(), t()) :: {:ok, t()} | {:error, OptionError.t()}
  def meet(%__MODULE__{} = profile, %__MODULE__{} = other) do
    consistent(%{
      profile
      | others: Enum.uniq(profile.others ++ [other.id | other.others]) -- ["", profile.id],
        grants: common(profile.grants, other.grants),
        within: profile.within ++ globs(other),
        tools: common(profile.tools, other.tools),
        writes: Enum.max_by([profile.writes, other.writes], &strictness/1),
        labels: Enum.uniq(profile.labels ++ other.labels)
    })
  end

  @doc false
  # The ids of those that it acts for, its own first.
  @spec ids(t()) :: [String.t()]
  def ids(%__MODULE__{id: id, others: others}), do: [id | others]

  @doc false
  # Whether an entry of this name is among those that it may see.
  @spec names?(t(), String.t()) :: boolean()
  def names?(%__MODULE__{} = profile, name),
    do: Enum.all?(globs(profile), &match?({:ok, [_]}, Native.globs_filter(&1, [name])))

  @doc false
  # Whether it has no more rights than another, whatever entries there are. Of globs only the same are compared: that
  # one names no more than another is not looked into.
  @spec within?(t(), t()) :: boolean()
  def within?(%__MODULE__{} = profile, %__MODULE__{} = other) do
    case meet(profile, other) do
      {:ok, both} ->
        same = [:grants, :tools, :writes, :labels]

        Map.take(both, same) == Map.take(%{profile | labels: Enum.uniq(profile.labels)}, same) and
          other.others -- ids(profile) == [] and narrower?(profile, other)

      {:error, _} ->
        false
    end
  end

  # Each list of the one has to be narrowed by one of the other's.
  defp narrower?(profile, other),
    do: Enum.all?(globs(other), fn wide -> Enum.any?(globs(profile), &(&1 -- wide == [])) end)

  defp common(:all, list), do: list
  defp common(list, :all), do: list
  defp common(list, other), do: Enum.filter(list, &(&1 in other))

  defp strictness(writes), do: Enum.find_index([:run, :ask, :delegate, :deny], &(&1 == writes))

  @doc false
  @spec globs(t()) :: [[glob()]]
  def globs(%__MODULE__{skills: :all, within: within}), do: within
  def globs(%__MODULE__{skills: skills, within: within}), do: [skills | within]

  defp schema do
    all_or_texts = {":all or a list of texts", &(&1 == :all or Options.texts?(&1))}

    [
      id: {"text", &Options.text?/1},
      others: {"a list of texts", &Options.texts?/1},
      grants: all_or_texts,
      skills: all_or_texts,
      within:
        {"a list of lists of texts",
         &(is_list(&1) and Enum.all?(&1, fn globs -> Options.texts?(globs) end))},
      tools: all_or_texts,
      writes: {":run, :delegate, :ask or :deny", &(&1 in [:run, :delegate, :ask, :deny])},
      labels: {"a list of texts", &Options.texts?/1},
      role: {"text or nil", &(is_nil(&1) or Options.text?(&1))}
    ]
  end
end
