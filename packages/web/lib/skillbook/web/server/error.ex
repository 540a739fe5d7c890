defmodule Skillbook.Web.Server.Error do
  @moduledoc """
  Returned when a server cannot listen.

  ## Fields

    * `:kind` - the reason:
      * `:in_use` - another program has the port, or answers at the socket
      * `:permission` - the system does not allow it
      * `:address` - this machine has no such address
      * `:certificate` - the certificate or its key cannot be used
      * `:other`
    * `:address` - the address, such as `"127.0.0.1:4004"`, or the path of the socket
    * `:reason` - the system's text

  ## Examples

      iex> error = %Skillbook.Web.Server.Error{kind: :in_use, address: "127.0.0.1:4004"}
      iex> Exception.message(error)
      "127.0.0.1:4004 is in use by another program; stop it, or choose another :port (0 takes " <>
        "any that is free)"
  """

  @type t :: %__MODULE__{
          kind: :in_use | :permission | :address | :certificate | :other,
          address: String.t(),
          reason: String.t() | nil
        }

  defexception [:kind, :address, :reason]

  @impl true
  def message(%{kind: :in_use, address: "/" <> _ = path}),
    do: "the socket #{path} is in use by another server; stop it, or choose another :socket"

  def message(%{kind: :in_use, address: address}) do
    "#{address} is in use by another program; stop it, or choose another :port " <>
      "(0 takes any that is free)"
  end

  def message(%{kind: :permission, address: "/" <> _ = path}),
    do: "the socket #{path} cannot be made: #{path |> Path.dirname()} is not writable"

  def message(%{kind: :permission, address: address}) do
    "the system does not allow to listen on #{address}; choose a :port from 1024 on"
  end

  def message(%{kind: :address, address: address}) do
    "this machine has no address #{address}; choose another :ip, such as {127, 0, 0, 1}"
  end

  def message(%{kind: :certificate, reason: reason}), do: "TLS: #{reason}"
  def message(%{address: address, reason: reason}), do: "cannot listen on #{address}: #{reason}"
end
