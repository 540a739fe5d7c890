defmodule Skillbook.Web.Token do
  @moduledoc """
  A token of `Skillbook.Web.Tokens`.

  ## Fields

    * `:id` - names it in lists, and to revoke it; not secret
    * `:profile` - the id of its profile
    * `:operator?` - whether it may see the book as every profile
    * `:scopes` - the areas that it opens: `:page`, `:mcp`, `:api`, `:chat`, `:discovery`
    * `:label` - a note for people, or `nil`
    * `:created_at`, `:expires_at`, `:last_used` - `DateTime`s in UTC. `:expires_at` is `nil` for
      a token without an end; `:last_used` is `nil` before its first use, and may be a minute old
    * `:secret` - after `Skillbook.Web.Tokens.create/2`, a function that returns the text to send;
      else `nil`
  """

  @type t :: %__MODULE__{
          id: String.t(),
          profile: String.t(),
          operator?: boolean(),
          scopes: [Skillbook.Web.area()],
          label: String.t() | nil,
          created_at: DateTime.t(),
          expires_at: DateTime.t() | nil,
          last_used: DateTime.t() | nil,
          secret: (() -> String.t()) | nil
        }

  @enforce_keys [:id, :profile, :scopes, :created_at]
  defstruct [
    :id,
    :profile,
    :scopes,
    :label,
    :created_at,
    :expires_at,
    :last_used,
    :secret,
    operator?: false
  ]
end
