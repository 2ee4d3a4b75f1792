import { isJsonObject } from '../../core/json.ts'

/** Keywords whose values are data and no schemas. */
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'example', 'examples'])

/** Keywords whose values are schemas by names, which are no keywords. */
const SCHEMAS_BY_NAME: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'definitions'])

/**
 * A value with JSON schemas somewhere in it, written so that `type` stands in the branches of an `anyOf` and never beside it, and without
 * `$schema`. It allows at least the same. The value itself is never written to, and is returned if nothing changes.
 */
export function withTypedBranches(value: unknown): unknown {
  return written(value, false)
}

function written(value: unknown, isByName: boolean): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => written(item, false))
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  if (!isJsonObject(value)) return value
  let changed: Record<string, unknown> | undefined
  for (const [name, member] of Object.entries(value)) {
    const mapped = !isByName && DATA.has(name) ? member : written(member, !isByName && SCHEMAS_BY_NAME.has(name))
    if (mapped === member) continue
    changed ??= { ...value }
    changed[name] = mapped
  }
  if (isByName) return changed ?? value
  const { $schema: dialect, type, anyOf: branches } = changed ?? value
  if (typeof dialect === 'string') {
    changed ??= { ...value }
    delete changed['$schema']
  }
  if (Array.isArray(branches) && (typeof type === 'string' || Array.isArray(type))) {
    changed ??= { ...value }
    delete changed['type']
    changed['anyOf'] = branches.map((branch) => typed(branch, type))
  }
  return changed ?? value
}

function typed(branch: unknown, type: unknown): unknown {
  if (isJsonObject(branch) && branch['type'] === undefined && Array.isArray(branch['anyOf']))
    return { ...branch, anyOf: branch['anyOf'].map((inner) => typed(inner, type)) }
  const hasType = isJsonObject(branch) && ['type', 'anyOf', '$ref'].some((name) => branch[name] !== undefined)
  return isJsonObject(branch) && !hasType ? { type, ...branch } : branch
}
