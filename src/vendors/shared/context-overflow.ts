/** Codes and types of vendors that only stand for an overflow. */
const CODES: ReadonlySet<string | undefined> = new Set([
  // OpenAI and most imitators.
  'context_length_exceeded',
  // llama.cpp.
  'exceed_context_size_error',
])

/**
 * Error texts for a prompt, or a prompt with its requested output, that exceeds the model's context window. Limits of bytes, of one
 * field, or of tokens per minute do not match, because a larger window would not help.
 */
const TEXTS: readonly RegExp[] = [
  // OpenAI, Azure, vLLM, DeepSeek, OpenRouter, Llama on Bedrock. Mistral names the limit last.
  /\bmaximum context length\b/i,
  // OpenAI's Responses; MiniMax: "context window exceeds limit".
  /\bexceeds? the context window\b|\bcontext window exceeds\b/i,
  // vLLM, SGLang: "longer than the model's context length", "the model's context length is only 4096 tokens".
  /\blonger than the (?:maximum model length|model's context length)\b|\bmodel's context length is only\b/i,
  // xAI.
  /\bmaximum prompt length is \d+/i,
  // Moonshot; Z.ai.
  /\bexceeded model token limit\b|\bprompt exceeds max length\b/i,
  // llama.cpp, LM Studio: "Trying to keep the first 9000 tokens when context the overflows."
  /\bexceeds the available context size\b|\bgreater than the context length\b|\btokens when context (?:the )?overflows\b/i,
  // Cloudflare.
  /\bexceeded this model context window limit\b/i,
  // Text Generation Inference, Together: "`inputs` tokens + `max_new_tokens` must be <= 8193".
  /`inputs` (?:tokens \+ `max_new_tokens` )?must (?:be <=|have less than) \d+/i,
  // Anthropic, on its own API and in the clouds; Fireworks.
  /\bprompt is too long\b/i,
  /\binput length and `max_tokens` exceed context limit\b/i,
  // Gemini: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."; Vertex AI.
  /\binput token count\b.{0,60}\b(?:exceeds the maximum|only supports up to)\b/is,
  // DashScope: "Range of input length should be [1, 129024]".
  /\brange of input length should be\b|\btotal message token length exceed\b/i,
  // Bedrock: its own text, Nova's, Titan's.
  /\binput is too long for requested model\b|\binput tokens exceeded\b|\btoo many input tokens\b/i,
]

/** Whether a vendor rejects a request because it exceeds the model's context window. */
export function isContextOverflow(message: string, code?: string, type?: string): boolean {
  return CODES.has(code) || CODES.has(type) || TEXTS.some((text) => text.test(message))
}
