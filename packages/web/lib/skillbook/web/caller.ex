defmodule Skillbook.Web.Caller do
  @moduledoc """
  The profile that a request comes from, and how that was found out.

  ## Fields

    * `:profile` - the `Skillbook.Profile`
    * `:view` - its view of the book; made once per request, so that a request sees one generation
    * `:operator?` - whether it may see the book as every profile of the tenants that its own
      profile reads, with all diagnostics and runs. Others get those of their own view
    * `:via` - `:application` (its `authenticate:`), `:token`, `:session` (a browser that has
      signed in), or `:open` (nothing was asked)
    * `:scopes` - the areas that it may ask: `:all` or a list of `:page`, `:mcp`, `:api`, `:chat`
      and `:discovery`
    * `:csrf` - the value of the field `_csrf` in forms; `nil` if none is needed
    * `:token` - the id of the token, for a token and for a session that began with one
  """

  alias Skillbook.Book.Profiles
  alias Skillbook.Web.Request
  alias Skillbook.{Book, Profile, View}

  @type t :: %__MODULE__{
          profile: Profile.t(),
          view: View.t(),
          operator?: boolean(),
          via: :application | :token | :session | :open,
          scopes: :all | [Skillbook.Web.area()],
          csrf: String.t() | nil,
          token: String.t() | nil
        }

  @enforce_keys [:profile, :view, :via]
  defstruct [:profile, :view, :via, :csrf, :token, operator?: false, scopes: :all]

  @doc false
  # Makes the caller of a profile or its id; `:error` if the book does not have it any more.
  @spec new(atom(), String.t() | Profile.t(), keyword()) :: {:ok, t()} | :error
  def new(book, profile, fields) do
    with {:ok, profile} <- fetch(book, profile) do
      view = View.of(book, profile)
      {:ok, struct!(__MODULE__, [profile: view.profile, view: view] ++ fields)}
    end
  end

  defp fetch(_book, %Profile{} = profile), do: {:ok, profile}

  defp fetch(book, id) do
    with nil <- Profiles.find(Book.fetch!(book), id),
         do: :error,
         else: (profile -> {:ok, profile})
  end

  @doc """
  Returns the view of the request's caller: the same one each time.
  """
  @spec view(Request.t()) :: View.t()
  def view(%Request{caller: %__MODULE__{view: view}}), do: view

  @doc false
  # All entries that an operator may see: those of the tenants that its profile reads.
  @spec all(t() | Request.t()) :: View.t()
  def all(%Request{caller: caller}), do: all(caller)
  def all(%__MODULE__{view: %{book: book}, profile: own}), do: View.all_of(book, own.tenant)

  @doc false
  # Whether an operator may see what a profile has written or done.
  @spec reads?(t(), String.t() | nil) :: boolean()
  def reads?(%__MODULE__{profile: profile}, tenant), do: Profile.reads?(profile, tenant)

  @doc false
  # Whether an operator may decide about what a profile has done, or change it. Those of a tenant
  # change nothing that is common.
  @spec writes?(t(), String.t() | nil) :: boolean()
  def writes?(%__MODULE__{profile: profile}, tenant), do: Profile.writes?(profile, tenant)

  @doc false
  # The listed profiles that an operator may see the book as, sorted by id.
  @spec profiles(t()) :: [String.t()]
  def profiles(%__MODULE__{view: %{book: book}} = caller) do
    for {id, profile} <- Enum.sort_by(Book.fetch!(book).profiles, &elem(&1, 0)),
        reads?(caller, profile.tenant),
        do: id
  end

  @doc false
  # The person, as the application knows it, and the token that was used, for records.
  @spec by(t()) :: String.t()
  def by(%__MODULE__{profile: profile, token: nil}), do: name(profile.id)
  def by(%__MODULE__{profile: profile, token: token}), do: "#{name(profile.id)} (token #{token})"

  # A profile of trusted code has no id.
  defp name(""), do: "the application"
  defp name(id), do: id

  @doc """
  Returns the caller as it sees the book "as" another profile, for operators; `:error` for others,
  and if there is no such profile. The rights are those of the other profile, and it is no
  operator.
  """
  @spec seen_as(t(), String.t()) :: {:ok, t()} | :error
  def seen_as(%__MODULE__{operator?: true, view: %View{book: book}} = caller, id)
      when is_binary(id) do
    with {:ok, %{profile: %{tenant: tenant}} = other} <- new(book, id, via: caller.via),
         true <- Profile.reads?(caller.profile, tenant) do
      {:ok, %{caller | profile: other.profile, view: other.view, operator?: false}}
    else
      _missing_or_of_another_tenant -> :error
    end
  end

  def seen_as(%__MODULE__{}, _id), do: :error

  @doc false
  @spec allows?(t(), Skillbook.Web.area()) :: boolean()
  def allows?(%__MODULE__{scopes: :all}, _area), do: true
  def allows?(%__MODULE__{scopes: scopes}, area), do: area in scopes

  defimpl Inspect do
    def inspect(caller, _options),
      do: "#Skillbook.Web.Caller<#{inspect(caller.profile.id)}, #{inspect(caller.via)}>"
  end
end
