import { type CatalogModel, isPattern, starOf } from './model.ts'

const GROUP = 'group:'

/**
 * Whether a key's list of models includes a model. An entry is a public id, a pattern with one `*`, or `group:` and the name of a
 * group. An omitted list includes every model.
 */
export function isInScope(scope: readonly string[] | undefined, model: CatalogModel): boolean {
  if (scope === undefined || scope.includes(model.id)) return true
  return scope.some((entry) => {
    if (entry.startsWith(GROUP)) return model.groups?.includes(entry.slice(GROUP.length)) === true
    return isPattern(entry) && starOf(entry, model.id) !== undefined
  })
}

/** Whether an entry of a scope is a pattern or a group, and not the id of one model. */
export function isScopeRule(entry: string): boolean {
  return entry.startsWith(GROUP) || isPattern(entry)
}
