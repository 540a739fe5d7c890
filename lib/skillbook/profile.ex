defmodule Skillbook.Profile do
  @moduledoc """
  The identity that reads and runs skills, with its rights.

  A book has a list of profiles, and each view belongs to one of them.

  ## Examples

      iex> {:ok, profile} = Skillbook.Profile.new(id: "guest", skills: ["tasks.*"], writes: :deny)
      iex> {profile.skills, profile.tools}
      {["tasks.*"], :all}

      iex> {:error, error} = Skillbook.Profile.new(id: "guest", grants: "external")
      iex> Exception.message(error)
      ~s(expected :all or a list of texts as the option :grants of a profile, got: "external")

  ## Options

    * `:id` (text) - the id. Entries may name it in `proactive_for_profile_ids` and
      `exclude_from_prompt_profile_ids`. Required
    * `:tenant` (text, `nil` or `:all`) - the tenant that it belongs to, of at most 200 bytes. It
      sees what is common to all tenants and what belongs to its own, and everything that it
      writes belongs to its tenant; no label, grant or glob changes that. Without a tenant it
      reads and writes only what is common. `:all` reads what belongs to any tenant, for operators
      and trusted code; what it creates is common. Defaults to `nil`
    * `:grants` (`:all` or list of texts) - the visibility labels that the profile may see. An
      entry is visible if all of its labels are granted. Defaults to `[]`
    * `:skills` (`:all` or list of globs) - the names of the entries that the profile may see.
      Case matters, and `*` also matches dots. Defaults to `:all`
    * `:within` (list of lists of globs) - further restrictions: a name must match one glob of
      each list; see `narrow/2`. Defaults to `[]`
    * `:others` (list of texts) - the ids of other profiles that it also acts for. Entries that
      exclude one of them exclude this profile too, and those that are proactive for one of them
      are for it; see `meet/2`. Defaults to `[]`
    * `:tools` (`:all` or list of patterns) - the tools that it may use; see
      `Skillbook.View.tools/2`. Defaults to `:all`
    * `:writes` - the rule for commands with side effects (`Skillbook.Entry.effect/1`). Defaults
      to `:run`
      * `:run` - run them
      * `:ask` - ask the `:ask` callback of the run or the book
      * `:delegate` - tell the model to use `agent.dispatch`
      * `:deny` - do not run them
    * `:approved` (list of globs) - the names of commands that run without asking, in spite of
      `writes: :ask` and of `approval: required` on their pages. For example a profile for
      scheduled reports may send mail: `["email.send"]`. Defaults to `[]`
    * `:labels` (list of texts) - visibility labels for everything that the profile writes to the
      store, in addition to the labels of the command. They must be in `:grants`. The profile
      cannot edit or delete entries without them. Defaults to `[]`
    * `:hooks` (list) - modules with callbacks of `Skillbook.Hook`, which run after those of the
      book. Defaults to `[]`
    * `:preflight` (`false`, keyword list or `nil`) - the router for its conversations: options of
      `Skillbook.Preflight.run/3`, which take precedence over the book's; or `false` for none,
      which no call can override. Defaults to `nil`, the book's
    * `:description` (text or `nil`) - the requests that belong to it, in at most 1,024
      characters, for `Skillbook.Preflight.profile/3`. Only profiles with a description are
      chosen. Defaults to `nil`
    * `:assigns` (map, or a function without arguments that returns one) - values for the handlers
      of the profile's commands, such as its tenant; see `Skillbook.Context`. Inspecting a profile
      shows their names only. Defaults to `%{}`
    * `:role` (text or `nil`) - the id of one of the book's `:roles`, which has the defaults for
      `:grants`, `:skills`, `:tools`, `:writes`, `:labels` and `:preflight`. Only the profiles of
      a book use it.
      Defaults to `nil`
  """

  alias Skillbook.Support.{Options, UntilError}
  alias Skillbook.{Hook, Native, OptionError, Part}

  @type glob :: String.t()
  @type writes :: :run | :delegate | :ask | :deny
  @type tenant :: String.t() | nil | :all
  @type t :: %__MODULE__{
          id: String.t(),
          tenant: tenant(),
          others: [String.t()],
          grants: :all | [String.t()],
          skills: :all | [glob()],
          within: [[glob()]],
          tools: :all | [String.t()],
          writes: writes(),
          approved: [glob()],
          labels: [String.t()],
          preflight: keyword() | false | nil,
          hooks: [module() | {module(), keyword()}],
          description: String.t() | nil,
          assigns: map(),
          role: String.t() | nil,
          services: [String.t()]
        }

  @enforce_keys [:id]
  defstruct [
    :id,
    :tenant,
    :preflight,
    :description,
    :role,
    others: [],
    grants: [],
    skills: :all,
    within: [],
    tools: :all,
    writes: :run,
    approved: [],
    labels: [],
    assigns: %{},
    hooks: [],
    services: []
  ]

  # It is a part of keys in the database.
  @max_tenant 200
  @max_description 1_024

  @typedoc "The options of each role, by its id."
  @type roles :: %{String.t() => keyword()}

  @doc """
  Makes a profile from options, or checks a profile.

      iex> {:error, error} = Skillbook.Profile.new(id: "mail", grants: ["a"], labels: ["a", "b"])
      iex> {error.option, error.problem}
      {:labels, {:invalid, "labels that are among its :grants", ["b"]}}
  """
  @spec new(t() | Skillbook.options()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(options) do
    with {:ok, profile} <- read(options), do: consistent(profile)
  end

  @doc """
  Like `new/1`, but raises the error.

      iex> Skillbook.Profile.new!(id: "guest", writes: :deny).writes
      :deny
  """
  @spec new!(t() | Skillbook.options()) :: t()
  def new!(options) do
    case new(options) do
      {:ok, profile} -> profile
      {:error, error} -> raise error
    end
  end

  @doc false
  # Whether it sees all entries of the tenants that it reads.
  @spec unrestricted?(t()) :: boolean()
  def unrestricted?(%__MODULE__{} = profile), do: profile.grants == :all and globs(profile) == []

  @doc false
  # The tenant that its writing belongs to; `nil` for what is common.
  @spec home(t()) :: String.t() | nil
  def home(%__MODULE__{tenant: :all}), do: nil
  def home(%__MODULE__{tenant: tenant}), do: tenant

  @doc false
  # Whether it reads what belongs to a tenant, or to none.
  @spec reads?(t(), String.t() | nil) :: boolean()
  def reads?(%__MODULE__{tenant: tenant}, other), do: tenant == :all or other in [nil, tenant]

  @doc false
  # Whether it may change what belongs to a tenant, or to none. What is common is read by all
  # tenants, so none of them may write there.
  @spec writes?(t(), String.t() | nil) :: boolean()
  def writes?(%__MODULE__{tenant: tenant}, other), do: tenant == :all or other == tenant

  @doc false
  @spec new(t() | Skillbook.options(), roles()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(options, roles) do
    options = Options.keywords(options)

    with {:ok, profile} <- read(options),
         {:ok, role} <- fetch_role(profile.role, roles) do
      if is_list(options), do: new(Keyword.merge(role, options)), else: new(profile)
    end
  end

  defp read(%__MODULE__{} = profile), do: {:ok, profile}

  defp read(options) do
    options = Options.keywords(options, [:preflight])

    with :ok <- Options.validate(options, "a profile", schema()),
         :ok <- Part.check(Part.installed(), :check_profile, [options, "a profile"]) do
      if Keyword.has_key?(options, :id),
        do: {:ok, struct!(__MODULE__, Keyword.replace_lazy(options, :assigns, &assigns/1))},
        else: {:error, %OptionError{subject: "a profile", option: :id, problem: :missing}}
    end
  end

  @doc false
  # The map of the option `:assigns`. A function keeps values out of reports of supervisors.
  @spec assigns(map() | keyword() | (() -> map() | keyword())) :: map()
  def assigns(assigns) when is_function(assigns), do: Map.new(assigns.())
  def assigns(assigns), do: Map.new(assigns)

  @doc false
  # Whether two profiles have the same id and rights. Assigns and a description are no rights, and
  # may differ each time that the application makes the profile.
  @spec same?(t(), t()) :: boolean()
  def same?(%__MODULE__{} = one, %__MODULE__{} = other), do: rights(one) == rights(other)

  @doc false
  # A hash of the id and the rights.
  @spec fingerprint(t()) :: String.t()
  def fingerprint(%__MODULE__{} = profile) do
    rights = :erlang.term_to_binary(rights(profile), [:deterministic])
    :sha256 |> :crypto.hash(rights) |> Base.encode16(case: :lower)
  end

  defp rights(profile),
    do: %{profile | assigns: %{}, description: nil, role: nil, services: [], hooks: []}

  # A profile must see the entries that it writes. Checked after the role has added its options.
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
  # Returns the labels that are not granted to the profile.
  @spec foreign(t(), [String.t()]) :: [String.t()]
  def foreign(%__MODULE__{grants: :all}, _labels), do: []
  def foreign(%__MODULE__{grants: grants}, labels), do: Enum.reject(labels, &(&1 in grants))

  @doc false
  @spec roles([Skillbook.options()]) :: {:ok, roles()} | {:error, OptionError.t()}
  def roles(roles) do
    UntilError.reduce(roles, %{}, fn role, done ->
      with {:ok, {id, given}} <- role(role) do
        if is_map_key(done, id), do: doubled_role(id), else: {:ok, Map.put(done, id, given)}
      end
    end)
  end

  defp role(options) do
    options = Options.keywords(options, [:preflight])

    schema = Keyword.drop(schema(), [:role, :tenant, :description, :assigns])

    with :ok <- Options.validate(options, "a role", schema),
         :ok <- Part.check(Part.installed(), :check_profile, [options, "a role"]),
         :error <- Keyword.pop(options, :id) |> named() do
      {:error, %OptionError{subject: "a role", option: :id, problem: :missing}}
    end
  end

  defp doubled_role(id) do
    problem = {:invalid, "roles with different ids", id}
    {:error, %OptionError{subject: "a book", option: :roles, problem: problem}}
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
  Returns the profile of trusted code, which may see and use everything.

      iex> Skillbook.Profile.unrestricted().grants
      :all
  """
  @spec unrestricted() :: t()
  def unrestricted do
    services = Part.flat(Part.installed(), :services)
    %__MODULE__{id: "", tenant: :all, grants: :all, services: services}
  end

  @doc """
  Restricts a profile to the entries that one of the globs matches.

  The result never sees more than the profile. It keeps the id, so the rules of entries for
  profiles apply unchanged.

      iex> {:ok, profile} = Skillbook.Profile.new(id: "guest", skills: ["tasks.*"])
      iex> narrow = Skillbook.Profile.narrow(profile, ["*.search", "memory.*"])
      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, view} = Skillbook.View.new(catalog, narrow)
      iex> Enum.map(Skillbook.View.entries(view), & &1.name)
      ["tasks.search"]
  """
  @spec narrow(t(), [glob()]) :: t()
  def narrow(%__MODULE__{within: within} = profile, globs) when is_list(globs),
    do: %{profile | within: within ++ [globs]}

  @doc """
  Restricts a profile to the rights that another profile has too.

  It keeps its id, and acts for the other profile too (`:others`). Patterns in `:tools` and
  `:approved` are kept if both profiles have them. A profile without a tenant gets that of the
  other. Returns an error if the two have different tenants, or if the result could not see the
  labels that it must write.

      iex> {:ok, nightly} = Skillbook.Profile.new(id: "nightly", grants: ["mail", "money"])
      iex> {:ok, maria} = Skillbook.Profile.new(id: "maria", grants: ["mail"], writes: :deny)
      iex> {:ok, both} = Skillbook.Profile.meet(nightly, maria)
      iex> {both.id, both.others, both.grants, both.writes}
      {"nightly", ["maria"], ["mail"], :deny}
  """
  @spec meet(t(), t()) :: {:ok, t()} | {:error, OptionError.t()}
  def meet(%__MODULE__{} = profile, %__MODULE__{} = other) do
    with {:ok, tenant} <- meet_tenants(profile.tenant, other.tenant),
         do: meet(profile, other, tenant)
  end

  # The text of a tenant must not reach another one, or those without one, so a profile that acts
  # for a tenant is in that tenant.
  defp meet_tenants(tenant, tenant), do: {:ok, tenant}
  defp meet_tenants(tenant, :all), do: {:ok, tenant}
  defp meet_tenants(tenant, other) when tenant in [nil, :all] or other == nil, do: {:ok, other}

  defp meet_tenants(tenant, other) do
    expected = "#{inspect(other)}, the tenant of the profile that it acts for,"
    problem = {:invalid, expected, tenant}
    {:error, %OptionError{subject: "a profile", option: :tenant, problem: problem}}
  end

  defp meet(profile, other, tenant) do
    consistent(%{
      profile
      | tenant: tenant,
        others: Enum.uniq(profile.others ++ [other.id | other.others]) -- ["", profile.id],
        grants: common(profile.grants, other.grants),
        within: profile.within ++ globs(other),
        tools: common(profile.tools, other.tools),
        writes: Enum.max_by([profile.writes, other.writes], &strictness/1),
        approved: common(profile.approved, other.approved),
        preflight: if(other.preflight == false, do: false, else: profile.preflight),
        labels: Enum.uniq(profile.labels ++ other.labels),
        hooks: Enum.uniq(profile.hooks ++ other.hooks)
    })
  end

  @doc false
  # Returns its id and the ids of the profiles that it acts for.
  @spec ids(t()) :: [String.t()]
  def ids(%__MODULE__{id: id, others: others}), do: [id | others]

  @doc false
  # Whether its globs match a name.
  @spec names?(t(), String.t()) :: boolean()
  def names?(%__MODULE__{} = profile, name),
    do: Enum.all?(globs(profile), &match?({:ok, [_]}, Native.globs_filter(&1, [name])))

  @doc false
  # Whether it runs the command of a name without asking.
  @spec approves?(t(), String.t()) :: boolean()
  def approves?(%__MODULE__{approved: []}, _name), do: false

  def approves?(%__MODULE__{approved: globs}, name),
    do: match?({:ok, [_]}, Native.globs_filter(globs, [name]))

  @doc false
  # Whether it has no more rights than another, for any entries. Globs are compared as texts: a
  # narrower glob in other words counts as different.
  @spec within?(t(), t()) :: boolean()
  def within?(%__MODULE__{} = profile, %__MODULE__{} = other) do
    case meet(profile, other) do
      {:ok, both} ->
        same = [:tenant, :grants, :tools, :writes, :approved, :labels]

        Map.take(both, same) == Map.take(%{profile | labels: Enum.uniq(profile.labels)}, same) and
          other.others -- ids(profile) == [] and narrower?(profile, other)

      {:error, _} ->
        false
    end
  end

  # Each list of the other profile must contain one of its lists.
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

  defp tenant?(tenant), do: tenant in [nil, :all] or name?(tenant)

  @doc false
  # Whether a value is the name of a tenant.
  @spec name?(term()) :: boolean()
  def name?(tenant) do
    is_binary(tenant) and byte_size(tenant) in 1..@max_tenant and String.valid?(tenant) and
      not String.contains?(tenant, "\0") and String.trim(tenant) != ""
  end

  # As that of a page.
  defp description?(text),
    do:
      Options.text?(text) and String.trim(text) != "" and String.length(text) <= @max_description

  defp hooks?([]), do: true
  defp hooks?(hooks), do: Hook.valid?(hooks)

  defp preflight?(options), do: options in [nil, false] or Keyword.keyword?(options)

  defp schema do
    all_or_texts = {":all or a list of texts", &(&1 == :all or Options.texts?(&1))}

    [
      id: {"text", &Options.text?/1},
      tenant: {"text of 1 to #{@max_tenant} bytes, nil or :all", &tenant?/1},
      others: {"a list of texts", &Options.texts?/1},
      grants: all_or_texts,
      skills: all_or_texts,
      within:
        {"a list of lists of texts",
         &(is_list(&1) and Enum.all?(&1, fn globs -> Options.texts?(globs) end))},
      tools: all_or_texts,
      writes: {":run, :delegate, :ask or :deny", &(&1 in [:run, :delegate, :ask, :deny])},
      approved: {"a list of globs", &(Options.texts?(&1) and Native.globs_check(&1) == :ok)},
      labels: {"a list of texts", &Options.texts?/1},
      preflight: {"false, a keyword list or nil", &preflight?/1},
      hooks: {"a list of modules with callbacks of Skillbook.Hook", &hooks?/1},
      description:
        {"text of 1 to #{@max_description} characters or nil", &(is_nil(&1) or description?(&1))},
      assigns:
        {"a map or a function without arguments", &(Options.assigns?(&1) or is_function(&1, 0))},
      role: {"text or nil", &(is_nil(&1) or Options.text?(&1))}
    ]
  end

  defimpl Inspect do
    def inspect(profile, options),
      do: Inspect.Any.inspect(%{profile | assigns: Map.keys(profile.assigns)}, options)
  end
end
