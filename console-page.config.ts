import { type BuildOptions, buildSync } from 'esbuild'

const shared = {
  bundle: true,
  minify: true,
  write: false,
  format: 'esm',
  platform: 'browser',
  target: ['es2022', 'chrome123', 'firefox120', 'safari17.5'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  logLevel: 'error',
} as const satisfies BuildOptions

/** Preact's licence asks for it; its files have no comment that the bundler could keep. */
const LICENCE = '/*! contains preact, MIT License, Copyright (c) 2015-present Jason Miller */'

/**
 * The page of the console, bundled into two texts that `src/console/console-handler.ts` finds in place of these names. Hosts need no
 * build step, and no file is looked up at run time.
 */
export function consolePageDefines(): Record<string, string> {
  return {
    CONSOLE_SCRIPT: JSON.stringify(`${LICENCE}\n${bundled('src/console/page/main.tsx')}`),
    CONSOLE_STYLE: JSON.stringify(bundled('src/console/page/page.css')),
  }
}

function bundled(path: string): string {
  const { outputFiles } = buildSync({ ...shared, absWorkingDir: import.meta.dirname, entryPoints: [path] })
  return outputFiles[0]?.text ?? ''
}
