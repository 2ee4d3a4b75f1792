import type * as z from 'zod'
import { isJsonObject } from '../../core/json.ts'
import { itemOf } from '../schema-acceptance.ts'

/**
 * Removes null members that the schema declares optional, including those in nested objects and list items. Returns the
 * same value if there are none.
 */
export function withoutNulls(schema: z.core.$ZodType, value: unknown): unknown {
  const { def } = (schema as z.core.$ZodTypes)._zod
  if (def.type === 'optional') return withoutNulls(def.innerType, value)
  if (def.type === 'union') {
    const list = def.options.find((option) => itemOf(option) !== undefined)
    return list === undefined ? value : withoutNulls(list, value)
  }
  const item = itemOf(schema)
  if (item !== undefined && Array.isArray(value)) {
    const items = value.map((each) => withoutNulls(item, each))
    return items.some((each, index) => each !== value[index]) ? items : value
  }
  if (def.type !== 'object' || !isJsonObject(value)) return value
  const { shape } = def
  const members = Object.entries(value)
  const kept = members
    .filter(([name, member]) => member !== null || memberOf(shape, name)?._zod.def.type !== 'optional')
    .map(([name, member]): [string, unknown] => {
      const inner = memberOf(shape, name)
      return [name, inner === undefined ? member : withoutNulls(inner, member)]
    })
  const isChanged = kept.length < members.length || kept.some(([name, member]) => member !== value[name])
  return isChanged ? Object.fromEntries(kept) : value
}

function memberOf(shape: Readonly<Record<string, z.core.$ZodType>>, name: string): z.core.$ZodType | undefined {
  return Object.hasOwn(shape, name) ? shape[name] : undefined
}
