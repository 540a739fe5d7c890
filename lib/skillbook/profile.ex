defmodule Skillbook.Profile do
  @moduledoc """
  On whose behalf something is read or run.

  ## Options

    * `:id` - its id, which entries may name in `proactive_for_profile_ids` and `exclude_from_prompt_profile_ids`. Required
    * `:grants` - the visibility labels it may see, or `:all`; none if it is left out. An entry is seen if all of its
      labels are granted
    * `:skills` - globs over the names of the entries it may see, or `:all` (the default). Case matters, and `*` also
      matches dots
    * `:tools` - the names of the tools it may use, or `:all` (the default)
    * `:role` - a name for what it may do, or `nil` (the default)

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
  @type t :: %__MODULE__{
          id: String.t(),
          grants: :all | [String.t()],
          skills: :all | [glob()],
          tools: :all | [String.t()],
          role: String.t() | nil
        }

  @enforce_keys [:id]
  defstruct [:id, :role, grants: [], skills: :all, tools: :all]

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
      role: {"text or nil", &(is_nil(&1) or Options.text?(&1))}
    ]
  end
end
