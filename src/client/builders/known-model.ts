import type { ModelDefinition } from '../../catalog/model.ts'

/** The row of a model that the package knows, by its id or by its vendor's; undefined for a host's own. */
export function knownModel(id: string, ...lists: readonly (readonly ModelDefinition[])[]): ModelDefinition | undefined {
  const rows = lists.flat()
  return rows.find((row) => row.id === id) ?? rows.find((row) => row.aliases?.includes(id) === true)
}
