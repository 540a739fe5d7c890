defmodule Skillbook.Web.Page.Rights do
  @moduledoc false
  # Whether the caller may change something on the page. The rule is that of commands, the
  # profile's `:writes`; `Skillbook.Store` checks labels and everything else.
  #
  # With `writes: :ask` a person has to agree. An operator is that person: each change is shown
  # before it is made. Others would agree to their own changes.

  alias Skillbook.Web.Request
  alias Skillbook.Web.Page.Layout

  @doc "`:ok`, or the reason in words."
  @spec check(Request.t()) :: :ok | {:error, String.t()}
  def check(%Request{caller: caller} = request) do
    profile = caller.profile

    cond do
      not Layout.writes?(request) ->
        {:error, "You see the book as another profile, which only reads. Leave that view first."}

      profile.writes == :run or (profile.writes == :ask and caller.operator?) ->
        :ok

      profile.writes == :ask ->
        {:error,
         "Changes of the profile #{inspect(profile.id)} need somebody's consent. " <>
           "Ask an operator of this book to make this one."}

      profile.writes == :delegate ->
        {:error,
         "The profile #{inspect(profile.id)} leaves changes to agents. " <>
           "Sign in with one that makes them itself."}

      true ->
        {:error, "The profile #{inspect(profile.id)} may not change anything."}
    end
  end

  @doc "Calls the function if the caller may change something, and else answers why not."
  @spec with_writes(Request.t(), (() -> answer)) :: answer | Skillbook.Web.Response.t()
        when answer: term()
  def with_writes(request, fun) do
    case check(request) do
      :ok -> fun.()
      {:error, text} -> Layout.failed(request, 403, text)
    end
  end
end
