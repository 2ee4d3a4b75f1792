import { createHash } from 'node:crypto'
import type { CatalogModel } from '../catalog/model.ts'
import { listedFacts } from './listed-facts.ts'
import { type ListContext, unavailableReasonBy, withVendorIds } from './model-list.ts'

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
