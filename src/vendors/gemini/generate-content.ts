import type { OpenApiSchema } from './openapi-schema.ts'

/** One piece of a turn. Exactly one of the payload fields is set. */
export interface GeminiPart {
  text?: string
  /** True for reasoning. */
  thought?: boolean
  /** Opaque state of the model's reasoning, base64; goes back on the same part. */
  thoughtSignature?: string
  inlineData?: { mimeType: string; data: string }
  fileData?: { mimeType?: string; fileUri: string }
  functionCall?: { id?: string; name: string; args: Record<string, unknown> }
  functionResponse?: { id?: string; name: string; response: Record<string, unknown> }
}

/** One turn. Function responses stand in turns of the user. */
export interface GeminiContent {
  role: 'user' | 'model'
  parts: GeminiPart[]
}

/** A function the model may call. `parameters` is absent for a function without arguments. */
export interface FunctionDeclaration {
  name: string
  description?: string
  parameters?: OpenApiSchema
}

/** Whether and what the model may call. */
export interface FunctionCallingConfig {
  mode: 'AUTO' | 'NONE' | 'ANY' | 'VALIDATED'
  allowedFunctionNames?: string[]
}

/** How the model thinks: a level (3.x) or a budget of tokens (2.5), never both. */
export interface ThinkingConfig {
  thinkingLevel?: 'MINIMAL' | 'LOW' | 'MEDIUM' | 'HIGH' | 'XHIGH'
  thinkingBudget?: number
  includeThoughts?: boolean
}

/** Settings of one generation. */
export interface GenerationConfig {
  maxOutputTokens?: number
  stopSequences?: string[]
  candidateCount?: number
  seed?: number
  temperature?: number
  topP?: number
  presencePenalty?: number
  frequencyPenalty?: number
  responseMimeType?: string
  responseJsonSchema?: Record<string, unknown>
  responseSchema?: OpenApiSchema
  responseLogprobs?: boolean
  logprobs?: number
  thinkingConfig?: ThinkingConfig
  /** What an image model answers with. */
  responseModalities?: ('TEXT' | 'IMAGE')[]
  imageConfig?: { aspectRatio?: string; imageSize?: string }
}

/** Body of `generateContent` and `streamGenerateContent`. */
export interface GenerateContentRequest {
  systemInstruction?: { parts: GeminiPart[] }
  contents: GeminiContent[]
  tools?: { functionDeclarations: FunctionDeclaration[] }[]
  toolConfig?: { functionCallingConfig: FunctionCallingConfig }
  generationConfig?: GenerationConfig
}
