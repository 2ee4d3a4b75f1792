import type { CatalogModel } from '../catalog/model.ts'
import { retirementOf } from '../catalog/model-retirement.ts'
import type { Rate } from '../catalog/prices/prices.ts'
import type { Ability } from '../catalog/vendor-models/vendor-model.ts'
import { formatDecimal, parseDecimal } from '../core/money.ts'
import { isConfigured, type PipelineContext } from '../pipeline/pipeline-context.ts'
import { isUnpricedBy } from '../pipeline/unpriced-models.ts'
import { type ListedFacts, listedFacts } from './listed-facts.ts'

/** A model as `GET /v1/models` lists it: the members that OpenAI's and those that Anthropic's clients read, in one object. */
export interface ListedModel {
  /** What callers write. */
  readonly id: string
  readonly object: 'model'
  /** Unix seconds. */
  readonly created: number
  /** Id of the vendor. */
  readonly owned_by: string
  readonly type: 'model'
  /** For people. */
  readonly display_name: string
  /** The same moment as `created`, as RFC 3339. */
  readonly created_at: string
  /** Day on which its vendor ends it, such as `2026-12-31`, if known; OpenRouter's name. */
  readonly expiration_date?: string
  /** The context window. */
  readonly max_input_tokens?: number
  /** Most output tokens. */
  readonly max_tokens?: number
  /** The same as `max_input_tokens`, under OpenRouter's name. */
  readonly context_length?: number
  /** The same as `max_tokens`, under OpenRouter's name. */
  readonly top_provider?: { readonly max_completion_tokens: number }
  /** What it reads and writes: `text`, `image`, `audio`, `video`, `pdf`. Absent, like all of these members: not known. */
  readonly architecture?: {
    readonly input_modalities: readonly string[]
    readonly output_modalities: readonly string[]
  }
  /** Parameters of a chat that depend on the model; also those that the gateway translates to something else of the vendor's. */
  readonly supported_parameters?: readonly string[]
  /** Dollars for one token, second, picture or request, as decimal strings; where the operator shows prices. */
  readonly pricing?: Readonly<Record<string, string>>
  /** What the model does. */
  readonly kinds: readonly string[]
  /** Whether calls of the model can be answered here. */
  readonly available: boolean
  /** Error code that calls of the model get: its vendor has no key, or it has no price and billing is on. Absent if available. */
  readonly unavailable_reason?: UnavailableReason
}

/** Why a listed model cannot be called: the error code that callers get. */
export type UnavailableReason = 'model_not_configured' | 'model_not_priced'

/** The answer of `GET /v1/models`. */
export interface ModelList {
  readonly object: 'list'
  readonly data: readonly ListedModel[]
  readonly has_more: false
  readonly first_id: string | null
  readonly last_id: string | null
}

/** What the list is made from. */
export type ListContext = Pick<PipelineContext, 'catalog' | 'vendors' | 'prices' | 'showPrices' | 'endpoints'>

/** Returns a function that says why a model cannot be called, or `undefined` if it can. */
export function unavailableReasonBy(context: ListContext): (model: CatalogModel) => UnavailableReason | undefined {
  const isUnpriced = isUnpricedBy(context)
  return (model) => {
    if (!isConfigured(context, model)) return 'model_not_configured'
    // A vendor's own id is listed too, and has the price of its model.
    return isUnpriced(context.catalog.find(model.id) ?? model) ? 'model_not_priced' : undefined
  }
}

/** Lists one model. */
export function listedModel(
  model: CatalogModel,
  context: ListContext,
  reasonOf = unavailableReasonBy(context),
): ListedModel {
  const reason = reasonOf(model)
  const { contextTokens, maxOutputTokens } = model.limits
  const facts = listedFacts(model, context.catalog.source)
  const { inputModalities, outputModalities } = facts
  const pricing = context.showPrices
    ? pricingOf(context.prices?.quote(context.catalog.find(model.id)?.id ?? model.id, {}))
    : undefined
  const retires = retirementOf(model, context.catalog.source)
  const created = model.created === 0 ? (facts.created ?? 0) : model.created
  return {
    id: model.id,
    object: 'model',
    created,
    owned_by: model.vendor,
    type: 'model',
    display_name: model.displayName,
    created_at: new Date(created * 1000).toISOString(),
    ...(retires === undefined ? {} : { expiration_date: retires }),
    ...(contextTokens === undefined ? {} : { max_input_tokens: contextTokens, context_length: contextTokens }),
    ...(maxOutputTokens === undefined
      ? {}
      : { max_tokens: maxOutputTokens, top_provider: { max_completion_tokens: maxOutputTokens } }),
    ...(inputModalities === undefined || outputModalities === undefined
      ? {}
      : { architecture: { input_modalities: inputModalities, output_modalities: outputModalities } }),
    ...(model.kinds.includes('chat') ? { supported_parameters: parametersOf(model, facts, context) } : {}),
    ...(pricing === undefined ? {} : { pricing }),
    kinds: model.kinds,
    available: reason === undefined,
    ...(reason === undefined ? {} : { unavailable_reason: reason }),
  }
}

/** Adds the vendor's own id of each model that callers may use by it: `claude-opus-4-7` after `cl-opus-4-7`. */
export function withVendorIds(models: readonly CatalogModel[], { catalog }: ListContext): CatalogModel[] {
  return models.flatMap((model) => {
    const { aliases, upstream } = model
    return aliases.includes(upstream) && catalog.find(upstream) === model
      ? [model, { ...model, id: upstream }]
      : [model]
  })
}

/** Lists all models; there is no paging, as with OpenAI, and Anthropic's paging members say so. */
export function modelList(models: readonly CatalogModel[], context: ListContext): ModelList {
  const reasonOf = unavailableReasonBy(context)
  const data = withVendorIds(models, context).map((model) => listedModel(model, context, reasonOf))
  return { object: 'list', data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
}

/** Parameters by what a model can do; all models of chat take the first ones. */
const PARAMETERS: Readonly<Record<Ability, readonly string[]>> = {
  reasoning: ['reasoning_effort'],
  tool_call: ['tools', 'tool_choice'],
  structured_output: ['response_format'],
  temperature: ['temperature', 'top_p'],
}

function parametersOf(
  model: CatalogModel,
  { abilities = [] }: ListedFacts,
  { vendors }: ListContext,
): readonly string[] {
  const parameters = ['max_tokens', 'max_completion_tokens', 'stop', ...abilities.flatMap((name) => PARAMETERS[name])]
  const makesFormats = vendors.get(model.vendor)?.chat?.makesAnswerFormats?.(model) === true
  return makesFormats && !abilities.includes('structured_output')
    ? [...parameters, ...PARAMETERS.structured_output]
    : parameters
}

/** OpenRouter's names of meters. */
const PRICING_NAMES: Readonly<Record<string, string>> = {
  input_token: 'prompt',
  output_token: 'completion',
  cached_input_token: 'input_cache_read',
  cache_write_token: 'input_cache_write',
  reasoning_token: 'internal_reasoning',
  input_audio_token: 'audio',
  image: 'image',
  request: 'request',
}

/** The prices that hold for a call without special fields; undefined when there is none. */
function pricingOf(rate: Rate | undefined): Readonly<Record<string, string>> | undefined {
  if (rate === undefined) return undefined
  const pricing: Record<string, string> = {}
  for (const { meter, amount, per, inputTokensAbove, serviceTier, thinking } of rate.prices) {
    const isOrdinary = inputTokensAbove === undefined && serviceTier === undefined && thinking === undefined
    const perUnit = isOrdinary ? unitPrice(amount, per) : undefined
    if (perUnit !== undefined) pricing[PRICING_NAMES[meter] ?? meter] = perUnit
  }
  return pricing
}

/** Undefined where no decimal says it: `per` is no power of ten. */
function unitPrice(amount: string, per: number): string | undefined {
  if (!/^10*$/.test(String(per))) return undefined
  const { numerator, denominator } = parseDecimal(amount)
  return formatDecimal({ numerator, denominator: denominator * BigInt(per) })
}
