// See docs/decisions/0015-prompt-caching.md.

import type { BillingFields } from '../catalog/prices/prices.ts'
import { isJsonObject } from '../core/json.ts'
import type { ExtraFeature } from './endpoint.ts'

/** A caller's mark on a part of a prompt or on a tool. It asks the vendor to cache the prompt up to this point. */
export interface CacheMark {
  /** Member in which the caller wrote the mark. */
  readonly field: 'cache_control' | 'prompt_cache_breakpoint'
  /** Whether to cache for an hour or longer, instead of some minutes. */
  readonly isLong: boolean
}

/** Returns the `cache_control` (Anthropic) or `prompt_cache_breakpoint` (OpenAI) of a part or tool, if any. */
export function cacheMarkOf(part: object): CacheMark | undefined {
  const { cache_control: control, prompt_cache_breakpoint: breakpoint } = part as Readonly<Record<string, unknown>>
  if (isJsonObject(control)) return { field: 'cache_control', isLong: control['ttl'] === '1h' }
  if (!isJsonObject(breakpoint)) return undefined
  return { field: 'prompt_cache_breakpoint', isLong: breakpoint['ttl'] === '12h' }
}

/** How long the marks of a prompt ask the vendor to cache it. The longest time counts. */
export type CacheTime = 'none' | 'minutes' | 'hour'

/** The members of a request of OpenAI's dialects that can carry marks. */
interface MarkedRequest {
  readonly messages: readonly object[]
  readonly tools?: unknown
  /** Mark for the whole request (OpenRouter, "Prompt Caching"; Anthropic, "Automatic caching"). */
  readonly cache_control?: unknown
}

/** Returns the longest time that the marks of a chat ask for. */
export function chatCacheTime({ messages, tools, cache_control }: MarkedRequest): CacheTime {
  let longest = longestOf(tools, cache_control === undefined ? 'none' : longestOf([{ cache_control }], 'none'))
  for (const message of messages) longest = longestOf((message as { readonly content?: unknown }).content, longest)
  return longest
}

function longestOf(parts: unknown, before: CacheTime): CacheTime {
  let longest = before
  if (!Array.isArray(parts) || longest === 'hour') return longest
  for (const part of parts) {
    const mark = isJsonObject(part) ? cacheMarkOf(part) : undefined
    if (mark !== undefined) longest = mark.isLong ? 'hour' : longest === 'none' ? 'minutes' : longest
  }
  return longest
}

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
  for (const member of members) {
    const steps = stepsOf(member)
    // Nearly every request has none of the members at its top.
    const value = request[steps[0]!.name]
    if (value !== undefined && value !== null) visit(value, { member, steps, found }, 0, steps[0]!.name)
  }
  return found
}

interface Step {
  readonly name: string
  /** Whether the value is a list, each element of which is visited. */
  readonly isList: boolean
}

/** Members are constants of vendors, so each path is parsed once. */
const parsed = new WeakMap<PriceMember, readonly Step[]>()

function stepsOf(member: PriceMember): readonly Step[] {
  let steps = parsed.get(member)
  if (steps === undefined) {
    steps = member.path.split('.').map((step) => ({ name: step.replace('[]', ''), isList: step.endsWith('[]') }))
    parsed.set(member, steps)
  }
  return steps
}

interface Search {
  readonly member: PriceMember
  readonly steps: readonly Step[]
  readonly found: ExtraFeature[]
}

/** Visits the value of the step at `index`, whose path in the request is `param`. */
function visit(value: unknown, search: Search, index: number, param: string): void {
  if (!search.steps[index]!.isList) visitInner(value, search, index, param)
  else if (Array.isArray(value))
    for (const [place, each] of value.entries()) visitInner(each, search, index, `${param}[${place}]`)
}

function visitInner(value: unknown, search: Search, index: number, param: string): void {
  const { member, steps, found } = search
  const next = steps[index + 1]
  if (next !== undefined) {
    if (isJsonObject(value)) visit(value[next.name], search, index + 1, `${param}.${next.name}`)
  } else if (value !== undefined && value !== null && !member.ordinary?.includes(value))
    found.push({ field: member.field, value: typeof value === 'object' ? 'true' : String(value), param })
}

/** The price fields without those that never reach a vendor. The same object if nothing is left out. */
export function withoutFields(fields: BillingFields, leftOut: ReadonlySet<string> | undefined): BillingFields {
  if (leftOut === undefined) return fields
  const names = Object.keys(fields)
  if (!names.some((name) => leftOut.has(name))) return fields
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !leftOut.has(name)))
}
