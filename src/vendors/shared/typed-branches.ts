import { isJsonObject } from '../../core/json.ts'

/** Keywords whose values are data, not schemas. */
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'example', 'examples'])

/** Keywords whose values map names to schemas. */
const SCHEMAS_BY_NAME: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'definitions'])

/** Names of types. Other values of `type` stay in place, so that a long one is not repeated. */
const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'])

/**
 * Moves `type` into the branches of each `anyOf` in a value with JSON schemas, and removes `$schema`. The result allows at least
 * the same. The value itself is never changed, and is returned if nothing changes. Visits each part once.
 */
export function withTypedBranches(value: unknown): unknown {
  return written(value, false, undefined)
}

/** @param outerType Type of the `anyOf` that the value is a branch of, or `undefined` for other values. */
function written(value: unknown, isByName: boolean, outerType: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => written(item, false, outerType))
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  if (!isJsonObject(value)) return value
  const { $schema: dialect, type, anyOf } = value
  const movesType = !isByName && Array.isArray(anyOf) && isType(type)
  const branchType = movesType ? type : type === undefined ? outerType : undefined
  let changed: Record<string, unknown> | undefined
  for (const [name, member] of Object.entries(value)) {
    if (!isByName && DATA.has(name)) continue
    const isBranches = !isByName && name === 'anyOf' && Array.isArray(member)
    const mapped = written(member, !isByName && SCHEMAS_BY_NAME.has(name), isBranches ? branchType : undefined)
    if (mapped === member) continue
    changed ??= { ...value }
    changed[name] = mapped
  }
  if (isByName) return changed ?? value
  if (typeof dialect === 'string') {
    changed ??= { ...value }
    delete changed['$schema']
  }
  if (movesType) {
    changed ??= { ...value }
    delete changed['type']
  }
  const hasType = ['type', 'anyOf', '$ref'].some((name) => value[name] !== undefined)
  return outerType === undefined || hasType ? (changed ?? value) : { type: outerType, ...(changed ?? value) }
}

function isType(type: unknown): boolean {
  return Array.isArray(type) ? type.length <= TYPES.size && type.every((name) => TYPES.has(name)) : TYPES.has(type)
}
