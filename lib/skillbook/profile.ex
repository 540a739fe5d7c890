defmodule Skillbook.Profile do
  @moduledoc """
  On whose behalf something is read or run.

  ## Options

    * `:id` - its id, which entries may name in `proactive_for_profile_ids` and `exclude_from_prompt_profile_ids`. Required
    * `:grants` - the visibility labels it may see, or `:all`; none if it is left out. An entry is seen if all of its
      labels are granted
    * `:skills` - globs over the names of the entries it may see, or `:all` (the default). Case matters, and `*` also
      matches dots
    * `:tools` - the tools it may use, as patterns of `Skillbook.View.tools/2`, or `:all` (the default)
    * `:writes` - what becomes of a command that changes something (`Skillbook.Entry.effect/1`): `:run` (the default) runs
      it, `:delegate` tells the model to hand it to an agent, `:ask` asks the `:ask` callback of the run or the book, `:deny`
      refuses it
    * `:role` - the id of one of the book's `:roles`, which says what this list leaves out of `:grants`, `:skills`,
      `:tools` and `:writes`; `nil` (the default) for none. A profile that is made without a book only keeps it, and so does a struct

  ## Examples

      iex> {:ok, profile} = Skillbook.Profile.new(id: "mail", grants: ["external"], skills: ["email.*"])
      iex> {profile.grants, profile.tools}
      {["external"], :all}

      iex> {:error, error} = Skillbook.Profile.new(id: "mail", grants: "external")
      iex> Exception.message(error)
      "expected :all or a list of texts as the option :grants of a profile, got: \\"external\\""
  """

  alias Skillbook.{OptionError, Options}

  @type glob :: String.t()
  @type writes :: :run | :delegate | :ask | :deny
  @type t :: %__MODULE__{
          id: String.t(),
          grants: :all | [String.t()],
          skills: :all | [glob()],
          tools: :all | [String.t()],
          writes: writes(),
          role: String.t() | nil
        }

  @enforce_keys [:id]
  defstruct [:id, :role, grants: [], skills: :all, tools: :all, writes: :run]

  @typedoc "What the profiles of a role have in common, by the role's id."
  @type roles :: %{String.t() => keyword()}

  @doc "Makes a profile of options, or of a profile."
  @spec new(t() | keyword()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(%__MODULE__{} = profile), do: {:ok, profile}

  def new(options) do
    with :ok <- Options.validate(options, "a profile", schema()) do
      if Keyword.has_key?(options, :id),
        do: {:ok, struct!(__MODULE__, options)},
        else: {:error, %OptionError{subject: "a profile", option: :id, problem: :missing}}
    end
  end

  @doc false
  @spec new(t() | keyword(), roles()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(options, roles) do
    with {:ok, profile} <- new(options),
         {:ok, role} <- fetch_role(profile.role, roles) do
      if is_list(options), do: new(Keyword.merge(role, options)), else: {:ok, profile}
    end
  end

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

      {:error, %OptionError{subject: "a profile", option: :role, problem: {:invalid, expected, id}}}
    end
  end

  @doc """
  The profile of trusted code, which sees and may use everything.

      iex> Skillbook.Profile.unrestricted().grants
      :all
  """
  @spec unrestricted() :: t()
  def unrestricted, do: %__MODULE__{id: "", grants: :all}

  defp schema do
    all_or_texts = {":all or a list of texts", &(&1 == :all or Options.texts?(&1))}

    [
      id: {"text", &Options.text?/1},
      grants: all_or_texts,
      skills: all_or_texts,
      tools: all_or_texts,
      writes: {":run, :delegate, :ask or :deny", &(&1 in [:run, :delegate, :ask, :deny])},
      role: {"text or nil", &(is_nil(&1) or Options.text?(&1))}
    ]
  end
end
