// The vendors' own ids that contain a vendor's name, for the types of requests. `Row` is the type for the public id of a built-in model.

/** Chat models of Gemini. */
export interface GeminiChatAliases<Row> {
  'gemini-2.5-pro': Row
  'gemini-2.5-flash': Row
}

/** Chat models of Gemini that need no row. */
export interface GeminiListedChats<Row> {
  'gemini-4-argon': Row
  'gemini-3.8-flash': Row
  'gemini-3.5-flash': Row
  'gemini-3.1-pro-preview': Row
  'gemini-3.1-flash-lite': Row
  'gemini-3-pro-preview': Row
  'gemini-3-flash-preview': Row
  'gemini-2.5-flash-lite': Row
}

/** Embedding models of Gemini. */
export interface GeminiEmbeddingAliases<Row> {
  'gemini-embedding-001': Row
  'gemini-embedding-2-preview': Row
}

/** Embedding models of Voyage. */
export interface VoyageEmbeddingAliases<Row> {
  'voyage-4-large': Row
  'voyage-4': Row
  'voyage-4-lite': Row
}

/** Image models of Gemini, each with a row of its own. */
export interface GeminiImageAliases<Flash31, Pro3, Flash25> {
  'gemini-3.1-flash-image-preview': Flash31
  'gemini-3-pro-image-preview': Pro3
  'gemini-2.5-flash-image': Flash25
  'gemini-2.5-flash-image-preview': Flash25
}

/** Image models of Gemini that need no row. */
export interface GeminiListedImages<Flash31, Pro3, Later> {
  'gemini-3.1-flash-image': Flash31
  'gemini-3-pro-image': Pro3
  'nano-banana-pro-preview': Pro3
  'gemini-3.1-flash-lite-image': Later
  'gemini-nano-banana-2.1': Later
}
