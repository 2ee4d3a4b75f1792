import type { ModelDefinition } from '../../catalog/model.ts'

const OMNI_CREATED = Date.UTC(2024, 8, 26) / 1000

/** Models for moderation of text and pictures (OpenAI, "Moderation"). */
export const OPENAI_MODERATION_MODELS: readonly ModelDefinition[] = [
  moderationModel('omni-moderation-latest', 'Omni Moderation'),
  moderationModel('omni-moderation-2024-09-26', 'Omni Moderation (2024-09-26)'),
]

function moderationModel(id: string, displayName: string): ModelDefinition {
  return { id, kind: 'moderation', vendor: 'openai', aliases: [`openai/${id}`], created: OMNI_CREATED, displayName }
}
