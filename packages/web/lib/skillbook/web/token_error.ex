defmodule Skillbook.TokenError do
  @moduledoc """
  Returned by `Skillbook.Web.Tokens`.

  ## Fields

    * `:kind` - `:store` if the book has no database, `:unknown` if no token has the id, and
      `:full` if the profile has the maximum of tokens
    * `:id` - the id, or that of the profile for `:full`

  ## Examples

      iex> Exception.message(%Skillbook.TokenError{kind: :unknown, id: "t-1"})
      "no token has the id t-1; Skillbook.Web.Tokens.list/2 and `skillbook token list` list them"
  """

  @type t :: %__MODULE__{kind: :store | :unknown | :full, id: String.t() | nil}

  @enforce_keys [:kind]
  defexception [:kind, :id]

  @impl true
  def message(%{kind: :store}) do
    "expected a book with a database, which stores tokens; set the option `store`, for " <>
      "example store: \"skillbook.db\""
  end

  def message(%{kind: :unknown, id: id}) do
    "no token has the id #{id}; Skillbook.Web.Tokens.list/2 and `skillbook token list` list them"
  end

  def message(%{kind: :full, id: profile}) do
    "the profile #{profile} has 1000 tokens, the maximum; revoke those that are not needed"
  end
end
