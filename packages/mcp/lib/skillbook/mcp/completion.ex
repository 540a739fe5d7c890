defmodule Skillbook.MCP.Completion do
  @moduledoc false
  # Completes arguments of prompts from the declared values of their flags, and variables of
  # templates of resources. Only entries of the caller's view are looked at.

  alias Skillbook.MCP.{Context, Error, Prompts, Resources}
  alias Skillbook.Flag

  # The most values that the protocol allows.
  @max 100
  # Bytes of a value to complete.
  @max_value 1_000

  @spec handle(String.t(), map(), Context.t()) :: {:ok, map()} | {:error, Error.t()}
  def handle("completion/complete", params, context) do
    with {:ok, name, value} <- argument(params),
         {:ok, values} <- values(params["ref"], name, value, context) do
      values = near(values, value)
      total = length(values)

      completion = %{
        "values" => Enum.take(values, @max),
        "total" => total,
        "hasMore" => total > @max
      }

      {:ok, %{"completion" => completion}}
    end
  end

  defp argument(%{"argument" => %{"name" => name, "value" => value}})
       when is_binary(name) and is_binary(value) and byte_size(value) <= @max_value,
       do: {:ok, name, value}

  defp argument(_params) do
    {:error,
     Error.params(
       "expected an `argument` with a `name` and a `value`, a text of at most #{@max_value} bytes"
     )}
  end

  defp values(%{"type" => "ref/prompt", "name" => prompt}, name, _value, context) do
    with {:ok, entry} <- Prompts.fetch(context, prompt) do
      case Enum.find(Prompts.flags(context.view, entry), &(Flag.in_json(&1.name) == name)) do
        nil -> {:error, Error.params("unknown argument #{Error.quoted(name)}")}
        flag -> {:ok, Enum.uniq(of_flag(flag) ++ flag.default)}
      end
    end
  end

  defp values(%{"type" => "ref/resource", "uri" => uri}, name, value, context)
       when is_binary(uri) do
    with :error <- Resources.complete(uri, name, value, context),
         do: {:error, Error.params("unknown resource template #{Error.quoted(uri)}")}
  end

  defp values(_ref, _name, _value, _context) do
    {:error, Error.params("expected a `ref` of the type ref/prompt or ref/resource")}
  end

  defp of_flag(%Flag{type: :switch}), do: ["true", "false"]
  defp of_flag(%Flag{values: values}), do: values

  # Those that begin with the value are first, in the order of the page.
  defp near(values, ""), do: values

  defp near(values, value) do
    value = String.downcase(value)
    begin = Enum.filter(values, &String.starts_with?(String.downcase(&1), value))
    begin ++ Enum.filter(values -- begin, &String.contains?(String.downcase(&1), value))
  end
end
