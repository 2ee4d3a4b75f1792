import { configDefaults, defineConfig } from 'vitest/config'

/**
 * Test files that get modules of their own, because they replace a module or the global `fetch`, or read the environment when
 * they are loaded.
 * The others of a worker share theirs: most of the time of a run was importing the same 700 modules for each file.
 */
export const ALONE = [
  'test/cli/serve-without-engine.test.ts',
  'test/client/against-gateway.test.ts',
  'test/client/browser.test.ts',
  'test/client/errors.test.ts',
  'test/client/requests.test.ts',
  'test/client/retries.test.ts',
  'test/client/streams.test.ts',
  'test/client/videos.test.ts',
  'test/tasks/webhook-egress.test.ts',
  'test/examples/next-route.test.ts',
]

export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // Two cores: more workers only take turns, and timing-sensitive socket tests suffer from it.
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: 'source',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, 'test/package/**', ...ALONE],
          isolate: false,
          // Lends servers to the tests that ask for one; starts nothing by itself.
          globalSetup: 'test/support/real-servers.setup.ts',
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: ALONE },
      },
      {
        extends: true,
        test: {
          name: 'package',
          include: ['test/package/**/*.test.ts'],
          isolate: false,
          // Packs what `npm test` has built, once, and only when these tests run.
          globalSetup: 'test/package/packed.setup.ts',
        },
      },
    ],
  },
})
