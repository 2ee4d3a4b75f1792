import { isJsonObject } from '../core/json.ts'
import type { ExtraFeature } from './endpoint.ts'

/** Member of a request that changes what a vendor charges, in addition to tokens and to the price fields of the endpoint. */
export interface PriceMember {
  /** Path in the request: `tools[].container.memory_limit`. `[]` is each element of a list. */
  readonly path: string
  /** Price field that names it in price rows: `container_memory`. */
  readonly field: string
  /** Values at the ordinary price. `undefined` and `null` always are. */
  readonly ordinary?: readonly unknown[]
}

/** Price members of a vendor by the id of the endpoint. */
export type PriceMembers = Readonly<Record<string, readonly PriceMember[]>>

/** Returns the members of a request whose values need a price. An object counts as `true`. */
export function pricedMembers(
  request: Readonly<Record<string, unknown>>,
  members: readonly PriceMember[],
): readonly ExtraFeature[] {
  const found: ExtraFeature[] = []
  for (const { path, field, ordinary = [] } of members)
    visit(request, path.split('.'), '', (value, param) => {
      if (value === undefined || value === null || ordinary.includes(value)) return
      found.push({ field, value: typeof value === 'object' ? 'true' : String(value), param })
    })
  return found
}

function visit(
  holder: unknown,
  [step, ...rest]: readonly string[],
  at: string,
  found: (value: unknown, param: string) => void,
): void {
  if (step === undefined) found(holder, at)
  else if (isJsonObject(holder)) {
    const name = step.replace('[]', '')
    const value = holder[name]
    const param = at === '' ? name : `${at}.${name}`
    if (name === step) visit(value, rest, param, found)
    else if (Array.isArray(value))
      for (const [index, each] of value.entries()) visit(each, rest, `${param}[${index}]`, found)
  }
}
