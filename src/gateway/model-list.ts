import { createHash } from 'node:crypto'
import { type ModelSource, retirementOf } from '../catalog/catalog.ts'
import type { CatalogModel } from '../catalog/model.ts'
import type { Rate } from '../catalog/prices/prices.ts'
import type { Ability, VendorModel } from '../catalog/vendor-models/vendor-model.ts'
import { kindFacts } from '../core/model-kind.ts'
import { formatDecimal, parseDecimal } from '../core/money.ts'
import { isUnpricedBy } from '../pipeline/model-notices.ts'
import { isConfigured, type PipelineContext } from '../pipeline/pipeline-context.ts'

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
type ListContext = Pick<PipelineContext, 'catalog' | 'vendors' | 'prices' | 'showPrices' | 'endpoints'>

/** Returns a function that returns why a model cannot be called, or `undefined` if it can. */
function unavailableReasonBy(context: ListContext): (model: CatalogModel) => UnavailableReason | undefined {
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
function withVendorIds(models: readonly CatalogModel[], { catalog }: ListContext): CatalogModel[] {
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

type KindModalities = Pick<VendorModel, 'inputModalities' | 'outputModalities'>

/** Facts of a model that lists show. Members are absent if they are not known. */
type ListedFacts = Partial<KindModalities & Pick<VendorModel, 'abilities' | 'created'>>

/** Returns what the row of a model declares, then what the catalog knows of it, then what follows from its kinds. */
function listedFacts(model: CatalogModel, source: ModelSource): ListedFacts {
  const known = source.facts?.(model.vendor, model.upstream)
  const kinds = model.kinds.flatMap((kind) => kindFacts(kind) ?? [])
  const ofKinds: Partial<KindModalities> = {
    inputModalities: [...new Set(kinds.flatMap(({ inputs }) => inputs))],
    outputModalities: [...new Set(kinds.map(({ output }) => output))],
  }
  const { inputModalities, outputModalities, abilities } = model
  return {
    ...(kinds.length === 0 ? {} : ofKinds),
    ...(model.kinds.includes('chat') ? { abilities: ['tool_call', 'structured_output', 'temperature'] } : {}),
    ...known,
    ...(inputModalities === undefined ? {} : { inputModalities }),
    ...(outputModalities === undefined ? {} : { outputModalities }),
    ...(abilities === undefined ? {} : { abilities }),
  }
}

/**
 * Model in the format that Codex reads from `GET /v1/models?client_version=…` (github openai/codex, `openai_models.rs`). Codex
 * rejects the whole list if a member that its version requires is missing, so this type has all members that any version requires.
 */
export interface CodingModel {
  readonly slug: string
  readonly display_name: string
  readonly description: string | null
  readonly default_reasoning_level: string | null
  readonly supported_reasoning_levels: readonly { readonly effort: string; readonly description: string }[]
  readonly shell_type: string
  readonly visibility: string
  readonly supported_in_api: boolean
  /** Order in the list; the smallest number comes first. */
  readonly priority: number
  readonly availability_nux: null
  readonly upgrade: null
  /** System prompt of a session with the model; it replaces the client's own. */
  readonly base_instructions: string
  readonly supports_reasoning_summaries: boolean
  readonly supports_reasoning_summary_parameter: boolean
  readonly default_reasoning_summary: string
  readonly support_verbosity: boolean
  readonly default_verbosity: null
  readonly apply_patch_tool_type: string
  readonly web_search_tool_type: string
  readonly truncation_policy: { readonly mode: string; readonly limit: number }
  readonly supports_parallel_tool_calls: boolean
  readonly supports_image_detail_original: boolean
  readonly context_window: number | null
  readonly max_context_window: number | null
  readonly auto_compact_token_limit: null
  readonly effective_context_window_percent: number
  readonly experimental_supported_tools: readonly string[]
  readonly input_modalities: readonly string[]
  readonly supports_search_tool: boolean
}

const INSTRUCTIONS = [
  "You are a coding agent. You work in the user's workspace, through the tools of this session.",
  'Read the files that matter before you change them, and follow the conventions and the instruction files that you find there.',
  'Never guess the content of a file, a path or the result of a command: look, or run it.',
  'Make the smallest change that solves the task. Leave unrelated code alone, and never discard work that is not yours.',
  "After a change run the project's own checks where there are any, and say plainly what you ran and what the result was.",
  'Go on until the task is done. Ask only for decisions that belong to the user, and before anything that cannot be undone.',
  "Answer briefly, in the user's language. Name files by their path.",
].join('\n')

const REASONING_LEVELS = [
  { effort: 'low', description: 'Little reasoning, fast answers' },
  { effort: 'medium', description: 'For most tasks' },
  { effort: 'high', description: 'Much reasoning, for hard tasks' },
] as const

/** Maximum size of a tool's output that the client sends back, in bytes. */
const TOOL_OUTPUT_BYTES = 10_000

/** Lists the models that a coding client can use: chat models that are available. */
export function codingModels(models: readonly CatalogModel[], context: ListContext): CodingModel[] {
  const reasonOf = unavailableReasonBy(context)
  const usable = withVendorIds(models, context).filter(
    (model) => model.kinds.includes('chat') && reasonOf(model) === undefined,
  )
  const { source } = context.catalog
  return usable.map((model, priority) => {
    const inputs = model.inputModalities ?? source.facts?.(model.vendor, model.upstream)?.inputModalities
    return codingModel(model, priority, {
      reasons: listedFacts(model, source).abilities?.includes('reasoning') === true,
      // Defaults to text only if the inputs are known. Versions of the client know only these two names.
      readsImages: inputs?.includes('image') !== false,
    })
  })
}

interface CodingAbilities {
  readonly reasons: boolean
  readonly readsImages: boolean
}

function codingModel(model: CatalogModel, priority: number, { reasons, readsImages }: CodingAbilities): CodingModel {
  const contextTokens = model.limits.contextTokens ?? null
  return {
    slug: model.id,
    display_name: model.displayName,
    description: null,
    default_reasoning_level: reasons ? 'medium' : null,
    supported_reasoning_levels: reasons ? REASONING_LEVELS : [],
    shell_type: 'shell_command',
    visibility: 'list',
    supported_in_api: true,
    priority,
    availability_nux: null,
    upgrade: null,
    base_instructions: INSTRUCTIONS,
    supports_reasoning_summaries: reasons,
    supports_reasoning_summary_parameter: reasons,
    default_reasoning_summary: reasons ? 'auto' : 'none',
    support_verbosity: false,
    default_verbosity: null,
    apply_patch_tool_type: 'freeform',
    web_search_tool_type: 'text',
    truncation_policy: { mode: 'bytes', limit: TOOL_OUTPUT_BYTES },
    supports_parallel_tool_calls: true,
    supports_image_detail_original: false,
    context_window: contextTokens,
    max_context_window: contextTokens,
    auto_compact_token_limit: null,
    effective_context_window_percent: 95,
    experimental_supported_tools: [],
    input_modalities: readsImages ? ['text', 'image'] : ['text'],
    supports_search_tool: false,
  }
}

/** Returns the version of a list; equal lists have equal versions. */
export function etagOf(list: unknown): string {
  return `"${createHash('sha256').update(JSON.stringify(list)).digest('base64url').slice(0, 22)}"`
}
