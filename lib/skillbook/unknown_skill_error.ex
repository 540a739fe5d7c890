defmodule Skillbook.UnknownSkillError do
  @moduledoc """
  A name that no entry has, or none that the view shows.

  ## Fields

    * `:name` - the name
    * `:suggestions` - up to three names that the view shows, the closest first

  ## Examples

      iex> Exception.message(%Skillbook.UnknownSkillError{name: "emial.send", suggestions: ["email.send", "email.read"]})
      "unknown skill \\"emial.send\\"; did you mean email.send or email.read? To list what there is, write: get_skill"

      iex> Exception.message(%Skillbook.UnknownSkillError{name: "x"})
      "unknown skill \\"x\\". To list what there is, write: get_skill"
  """

  @type t :: %__MODULE__{name: String.t(), suggestions: [String.t()]}

  defexception [:name, suggestions: []]

  @impl true
  def message(%{name: name, suggestions: suggestions}) do
    # A name can be as long as a whole command that went wrong.
    "unknown skill #{inspect(String.slice(name, 0, 100))}#{offer(suggestions)} To list what there is, write: get_skill"
  end

  defp offer([]), do: "."
  defp offer([name]), do: "; did you mean #{name}?"

  defp offer(names) do
    {last, others} = List.pop_at(names, -1)
    "; did you mean #{Enum.join(others, ", ")} or #{last}?"
  end
end
