defmodule Skillbook.Web.API do
  @moduledoc false
  # The read-only API: the skills of the caller's view as JSON, for code that a model runs
  # elsewhere. It runs nothing, and lists the skills that a model of the profile is offered.
  #
  # Each route is an operation for readers (`Skillbook.Support.Operation`), so a new one needs a
  # path here and nothing else. `GET /api/openapi.json` describes all of them.

  alias Skillbook.Support.Operation
  alias Skillbook.{Part, UnknownSkillError}
  alias Skillbook.Web.API.Description
  alias Skillbook.Web.{Caller, Request, Response}

  # The operations of a path, and of a subject below it.
  @paths %{"openapi.json" => [:openapi], "skills" => [:skills, :skill]}

  @doc false
  @spec handle(Request.t(), Skillbook.Web.t()) :: Response.t()
  def handle(%Request{path: ["api", path | subject]} = request, web)
      when is_map_key(@paths, path) do
    case Enum.at(@paths[path], length(subject)) do
      nil ->
        missing()

      name when request.method == "GET" ->
        name |> operation(request, web) |> answer(subject, request) |> Response.private()

      _name ->
        Response.put_header(error(405, "The API is read-only: GET."), "allow", "GET, HEAD")
    end
  end

  def handle(_request, _web), do: missing()

  defp missing, do: error(404, "Not found. /api/openapi.json describes the API.")

  defp operation(:openapi, request, web) do
    %Operation{
      name: :openapi,
      doc: "Describes the API by OpenAPI 3.1.",
      output: [text: [:openapi], map: ~w(info paths components)a, objects: ~w(servers security)a],
      run: fn _view, [] -> {:ok, Description.make(operations(request, web), request, web)} end
    }
  end

  defp operation(name, _request, _web), do: Part.operation(name)

  defp operations(request, web) do
    for {path, names} <- @paths, name <- names, do: {path, operation(name, request, web)}
  end

  defp answer(%Operation{caller: :reader} = operation, subject, request) do
    with {:ok, input} <- input(operation, Request.query(request)),
         {:ok, result} <- apply(operation.run, [Caller.view(request) | subject] ++ [input]) do
      Response.json(200, Operation.json(operation.output, result))
    else
      # Without the suggestions that a model gets: every name has the same answer.
      {:error, %UnknownSkillError{}} -> error(404, "There is no skill of this name.")
      {:error, text} when is_binary(text) -> error(400, text)
      {:error, error} -> error(Operation.status(operation, error), Exception.message(error))
    end
  end

  # An unknown field is refused: a filter with a mistake in its name would list everything.
  defp input(%{input: []}, _fields), do: {:ok, []}

  defp input(operation, fields) do
    names = for {name, _type} <- operation.input, do: Atom.to_string(name)
    {last, first} = List.pop_at(names, -1)

    if Map.keys(fields) -- ["format" | names] == [],
      do: Operation.read(operation, fields),
      else: {:error, "Expected the fields #{Enum.join(first, ", ")} and #{last} in the query."}
  end

  defp error(status, text), do: Response.json(status, %{error: text})
end
