import type { ChatStreamWriter } from '../../src/endpoints/chat/chat-stream-writer.ts'

/** One call on a writer: its name and arguments. */
export type WriterCall = readonly [method: string, ...args: unknown[]]

/** A writer that keeps what a decoder told it. */
export interface RecordingWriter extends ChatStreamWriter {
  readonly calls: WriterCall[]
}

/** Makes a writer whose `calls` a test compares with the expected list, independent of how the bytes were cut. */
export function recordingWriter(): RecordingWriter {
  const calls: WriterCall[] = []
  const record =
    (method: string) =>
    (...args: unknown[]): void => {
      calls.push([method, ...args.filter((argument) => argument !== undefined)])
    }
  return {
    calls,
    start: record('start'),
    text: record('text'),
    refusal: record('refusal'),
    reasoning: record('reasoning'),
    thinkingBlock: record('thinkingBlock'),
    extraContent: record('extraContent'),
    annotations: record('annotations'),
    toolCall: record('toolCall'),
    toolCallArguments: record('toolCallArguments'),
    finish: record('finish'),
  }
}
