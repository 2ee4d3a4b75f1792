#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { SettingError } from './setting-values.ts'
import { runSignalbox } from './signalbox.ts'

function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
  return manifest.version
}

// A reader such as `head` may close the pipe early, which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function warn(line: string): void {
  process.stderr.write(`signalbox: ${line}\n`)
}

function endWithOne(): void {
  process.exitCode = 1
}

function fail(error: unknown): never {
  const isKnown = error instanceof SettingError || (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
  warn(isKnown ? (error as Error).message : ((error as Error).stack ?? String(error)))
  process.exit(1)
}

runSignalbox(process.argv.slice(2), { environment: process.env, print, warn, fail: endWithOne }, version()).catch(fail)
