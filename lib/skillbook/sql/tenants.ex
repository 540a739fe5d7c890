defmodule Skillbook.SQL.Tenants do
  @moduledoc false
  # The column `tenant` of tables: the name of a tenant, or an empty text for rows that are common
  # to all tenants.

  alias Skillbook.{Profile, SQL}

  @doc """
  The condition for rows that a profile may read, with its parameters, the first of which has this
  number.
  """
  @spec readable(Profile.t(), String.t(), pos_integer()) :: {String.t(), [SQL.param()]}
  def readable(%Profile{tenant: :all}, _column, _first), do: {"1 = 1", []}
  def readable(%Profile{tenant: nil}, column, _first), do: {"#{column} = ''", []}

  def readable(%Profile{tenant: tenant}, column, first),
    do: {"#{column} in ('', $#{first})", [tenant]}

  @doc """
  The same as a condition for each tenant, for lists in an order. Their parameters are added to
  those of the statement.
  """
  @spec each(Profile.t(), String.t(), [SQL.param()]) :: {[String.t()], [SQL.param()]}
  def each(%Profile{tenant: :all}, _column, params), do: {["1 = 1"], params}
  def each(%Profile{tenant: nil}, column, params), do: {["#{column} = ''"], params}

  def each(%Profile{tenant: tenant}, column, params),
    do: {["#{column} = ''", "#{column} = $#{length(params) + 1}"], params ++ [tenant]}

  @doc """
  A handle for transactions in which a profile writes only rows of its own tenant, and reads those
  and common ones. Rows that are common to all tenants are written with the handle itself.
  """
  @spec own(SQL.t(), Profile.t()) :: SQL.t()
  def own(sql, profile), do: SQL.of_parts(sql, [part(profile)])

  @doc "The part of what a profile writes, for `Skillbook.SQL.of_parts/2`."
  @spec part(Profile.t()) :: {:tenant, String.t()} | :all
  def part(%Profile{tenant: tenant}) when is_binary(tenant), do: {:tenant, tenant}
  def part(_profile), do: :all

  @doc "The value of the column for what a profile writes."
  @spec home(Profile.t()) :: String.t()
  def home(profile), do: to_column(Profile.home(profile))

  @doc "The value of the column for a tenant."
  @spec to_column(String.t() | nil) :: String.t()
  def to_column(tenant), do: tenant || ""

  @doc "The tenant of the column's value; `nil` for common rows."
  @spec from_column(String.t()) :: String.t() | nil
  def from_column(""), do: nil
  def from_column(tenant), do: tenant
end
