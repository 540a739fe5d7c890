defmodule Skillbook.Handlers.HubSpot.Values do
  @moduledoc false
  # The properties that a command sets: by its flags, `--set`, `--clear` and `--owner`.

  alias Skillbook.FlagError
  alias Skillbook.Handlers.HubSpot.{API, Object, Properties}

  @doc "The values of `--set`, which must not repeat a flag."
  @spec pairs(map()) :: {:ok, [{String.t(), String.t()}]} | {:error, FlagError.t()}
  def pairs(flags), do: Properties.pairs(flags["set"] || [])

  @doc "All properties of a call, checked by the definitions of those that it names itself."
  @spec read(API.call(), map(), [{String.t(), String.t()}]) ::
          {:ok, map()} | {:error, Exception.t()}
  def read(call, flags, pairs) do
    own = Object.properties(call.object, flags)
    cleared = Enum.map(flags["clear"] || [], &Properties.norm/1)

    with :ok <- once(call, flags, own, pairs, cleared),
         {:ok, definitions} <- definitions(call, pairs, cleared),
         {:ok, set} <- Properties.values(pairs, definitions, call),
         :ok <- Properties.known(cleared, definitions, "clear", call),
         {:ok, owner} <- owner(call, flags["owner"]) do
      {:ok, own |> Map.merge(set) |> Map.merge(Map.new(cleared, &{&1, ""})) |> Map.merge(owner)}
    end
  end

  defp definitions(_call, [], []), do: {:ok, %{}}
  defp definitions(call, _pairs, _cleared), do: Properties.definitions(call)

  # A property with two values would keep either.
  defp once(call, flags, own, pairs, cleared) do
    set = Enum.map(pairs, &elem(&1, 0))
    twice = set -- Enum.uniq(set)

    flag =
      Enum.find(call.object.flags, fn {_, name, _} -> own[name] && name in (set ++ cleared) end)

    cond do
      twice != [] ->
        FlagError.conflict(["set"], "#{hd(twice)} is set twice")

      flag != nil ->
        FlagError.conflict([elem(flag, 0), used(flags, flag)], "both change #{elem(flag, 1)}")

      both = Enum.find(cleared, &(&1 in set)) ->
        FlagError.conflict(["set", "clear"], "both change #{both}")

      true ->
        :ok
    end
  end

  defp used(flags, {_flag, name, _form}) do
    if Enum.any?(flags["clear"] || [], &(Properties.norm(&1) == name)), do: "clear", else: "set"
  end

  defp owner(_call, nil), do: {:ok, %{}}

  defp owner(call, email) do
    with {:ok, owners} <- API.owners(call, email) do
      case owners do
        [%{"id" => id} | _] -> {:ok, %{"hubspot_owner_id" => to_string(id)}}
        [] -> FlagError.invalid("owner", email, "the address of a user of HubSpot")
      end
    end
  end
end
