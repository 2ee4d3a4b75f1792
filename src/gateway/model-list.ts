import type { CatalogModel } from '../catalog/model.ts'
import { retirementOf } from '../catalog/model-retirement.ts'
import type { Rate } from '../catalog/prices/prices.ts'
import type { Ability } from '../catalog/vendor-models/vendor-model.ts'
import { formatDecimal, parseDecimal } from '../core/money.ts'
import { isConfigured, type PipelineContext } from '../pipeline/pipeline-context.ts'
import { isUnpricedBy } from '../pipeline/unpriced-models.ts'
import { type ListedFacts, listedFacts } from './listed-facts.ts'

/** Model in `GET /v1/models`: the members that OpenAI's and Anthropic's clients read, in one object. */
export interface ListedModel {
  /** Id that callers use in requests. */
  readonly id: string
  readonly object: 'model'
  /** Release time in Unix seconds. */
  readonly created: number
  /** Id of the vendor. */
  readonly owned_by: string
  readonly type: 'model'
  /** Display name. */
  readonly display_name: string
  /** Value of `created`, in RFC 3339. */
  readonly created_at: string
  /** Day on which its vendor ends it, such as `2026-12-31`, if known. The name is OpenRouter's. */
  readonly expiration_date?: string
  /** Context window in tokens. */
  readonly max_input_tokens?: number
  /** Maximum number of output tokens. */
  readonly max_tokens?: number
  /** Value of `max_input_tokens`, under OpenRouter's name. */
  readonly context_length?: number
  /** Value of `max_tokens`, under OpenRouter's name. */
  readonly top_provider?: { readonly max_completion_tokens: number }
  /** Supported inputs and outputs: `text`, `image`, `audio`, `video`, `pdf`. Like all of these members, it is omitted if unknown. */
  readonly architecture?: {
    readonly input_modalities: readonly string[]
    readonly output_modalities: readonly string[]
  }
  /** Chat parameters that depend on the model, including those that the gateway translates to parameters of the vendor. */
  readonly supported_parameters?: readonly string[]
  /** Dollars for one token, second, image or request, as decimal strings, if the operator shows prices. */
  readonly pricing?: Readonly<Record<string, string>>
  /** Kinds of work that the model does. */
  readonly kinds: readonly string[]
  /** Whether this gateway can answer calls of the model. */
  readonly available: boolean
  /** Error code that calls of the model get: its vendor has no key, or it has no price and billing is on. Omitted if available. */
  readonly unavailable_reason?: UnavailableReason
}

/** Reason why a listed model cannot be called: the error code that callers get. */
export type UnavailableReason = 'model_not_configured' | 'model_not_priced'

/** Answer of `GET /v1/models`. */
export interface ModelList {
  readonly object: 'list'
  readonly data: readonly ListedModel[]
  readonly has_more: false
  readonly first_id: string | null
  readonly last_id: string | null
}

/** Parts of a gateway that the list is built from. */
export type ListContext = Pick<PipelineContext, 'catalog' | 'vendors' | 'prices' | 'showPrices' | 'endpoints'>

/** Returns a function that returns why a model cannot be called, or `undefined` if it can. */
export function unavailableReasonBy(context: ListContext): (model: CatalogModel) => UnavailableReason | undefined {
  const isUnpriced = isUnpricedBy(context)
  return (model) => {
    if (!isConfigured(context, model)) return 'model_not_configured'
    // The vendor's own id is also listed, and has the price of its model.
    return isUnpriced(context.catalog.find(model.id) ?? model) ? 'model_not_priced' : undefined
  }
}

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

/** Adds the vendor's own id of each model that callers may use it for: `claude-opus-4-7` after `cl-opus-4-7`. */
export function withVendorIds(models: readonly CatalogModel[], { catalog }: ListContext): CatalogModel[] {
  return models.flatMap((model) => {
    const { aliases, upstream } = model
    return aliases.includes(upstream) && catalog.find(upstream) === model
      ? [model, { ...model, id: upstream }]
      : [model]
  })
}

/** Lists all models. There is no paging, as in OpenAI's API, and Anthropic's paging members report a single page. */
export function modelList(models: readonly CatalogModel[], context: ListContext): ModelList {
  const reasonOf = unavailableReasonBy(context)
  const data = withVendorIds(models, context).map((model) => listedModel(model, context, reasonOf))
  return { object: 'list', data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
}

/** Parameters by ability. All chat models support the first ones. */
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

/** Returns the prices of a call without special fields, or `undefined` if there are none. */
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

/** Returns `undefined` if no decimal is exact, because `per` is not a power of ten. */
function unitPrice(amount: string, per: number): string | undefined {
  if (!/^10*$/.test(String(per))) return undefined
  const { numerator, denominator } = parseDecimal(amount)
  return formatDecimal({ numerator, denominator: denominator * BigInt(per) })
}
