import { isJsonObject } from '../../core/json.ts'

/** Which fields of a request are optional. */
export interface OptionalFields {
  readonly fields: readonly string[]
  /** The optional fields of its members, or of the items of lists there, by the name of the member. */
  readonly of?: Readonly<Record<string, readonly string[]>>
}

/** A request without its optional fields of null: null means that a field is absent. What holds none is returned itself. */
export function withoutNulls(value: unknown, { fields, of = {} }: OptionalFields): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => withoutNulls(item, { fields }))
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  if (!isJsonObject(value)) return value
  const members = Object.entries(value)
  const kept = members
    .filter(([name, member]) => member !== null || !fields.includes(name))
    .map(([name, member]): [string, unknown] => {
      const inner = Object.hasOwn(of, name) ? of[name] : undefined
      return [name, inner === undefined ? member : withoutNulls(member, { fields: inner })]
    })
  const isChanged = kept.length < members.length || kept.some(([name, member]) => member !== value[name])
  return isChanged ? Object.fromEntries(kept) : value
}
