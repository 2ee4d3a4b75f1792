import { isPattern, starOf } from './id-pattern.ts'
import type { CatalogModel } from './model.ts'

const GROUP = 'group:'

/**
 * Does a key's list of models name this one? An entry is a public id, a pattern with one `*`, or `group:` and the name of a group.
 * An absent list names every model.
 */
export function isInScope(scope: readonly string[] | undefined, model: CatalogModel): boolean {
  if (scope === undefined || scope.includes(model.id)) return true
  return scope.some((entry) => {
    if (entry.startsWith(GROUP)) return model.groups?.includes(entry.slice(GROUP.length)) === true
    return isPattern(entry) && starOf(entry, model.id) !== undefined
  })
}

/** Is an entry of a scope a rule, and not the id of one model? */
export function isScopeRule(entry: string): boolean {
  return entry.startsWith(GROUP) || isPattern(entry)
}
