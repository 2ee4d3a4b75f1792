import type { ModelDefinition } from '../../catalog/define-model.ts'

/** The row of a model that the package knows, by its id or by its vendor's; undefined for a host's own. */
export function knownModel(rows: readonly ModelDefinition[], id: string): ModelDefinition | undefined {
  return rows.find((row) => row.id === id) ?? rows.find((row) => row.aliases?.includes(id) === true)
}
