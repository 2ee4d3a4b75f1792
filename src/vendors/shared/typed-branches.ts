import { isJsonObject } from '../../core/json.ts'

/** Keywords whose values are data and no schemas. */
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'example', 'examples'])

/**
 * A value with JSON schemas somewhere in it, written so that `type` stands in the branches of an `anyOf` and never beside it, and without
 * `$schema`. It allows the same. The value itself is never written to, and is returned if nothing changes.
 */
export function withTypedBranches(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(withTypedBranches)
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  if (!isJsonObject(value)) return value
  let changed: Record<string, unknown> | undefined
  for (const [name, member] of Object.entries(value)) {
    const mapped = DATA.has(name) ? member : withTypedBranches(member)
    if (mapped === member) continue
    changed ??= { ...value }
    changed[name] = mapped
  }
  const { $schema: dialect, type, anyOf: branches } = changed ?? value
  // In a list of properties these are names, and their values schemas.
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
  const hasType = isJsonObject(branch) && ['type', 'anyOf', '$ref'].some((name) => branch[name] !== undefined)
  return isJsonObject(branch) && !hasType ? { type, ...branch } : branch
}
