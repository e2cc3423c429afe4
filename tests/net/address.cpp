// Names, routes and interfaces.
#include "runtime/net/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Address, PortsOfIpv6StandAfterBrackets) {
  EXPECT_EQ((Endpoint{"10.0.0.1", 29500}).Text(), "10.0.0.1:29500");
  EXPECT_EQ((Endpoint{"fd00::1", 29500}).Text(), "[fd00::1]:29500");
  EXPECT_EQ((Endpoint{"[fd00::1]", 29500}).Text(), "[fd00::1]:29500");
}

TEST(Address, ThoseOfIpv4AreTakenFirst) {
  std::vector<SocketAddress> mixed;
  for (const char* host : {"::1", "127.0.0.2", "::2", "127.0.0.1"}) {
    mixed.push_back(Resolve({host, 5})->front());
  }
  std::vector<std::string> hosts;
  for (const SocketAddress& address : Ipv4First(mixed)) {
    hosts.push_back(address.Host());
  }
  EXPECT_THAT(hosts, testing::ElementsAre("127.0.0.2", "127.0.0.1", "::1", "::2"));
}

TEST(Address, OfNumbersAndNames) {
  const auto ipv4 = Resolve({"127.0.0.1", 5});
  ASSERT_TRUE(ipv4.ok());
  EXPECT_EQ(ipv4->front().Host(), "127.0.0.1");
  EXPECT_EQ(ipv4->front().Port(), 5);
  const auto ipv6 = Resolve({"[::1]", 6});
  ASSERT_TRUE(ipv6.ok());
  EXPECT_EQ(ipv6->front().Host(), "::1");
  EXPECT_EQ(ipv6->front().Port(), 6);
  EXPECT_TRUE(Resolve({"localhost", 7}).ok());
}

TEST(Address, OfAHostForItselfAlone) {
  for (const char* host : {"localhost", "127.0.0.1", "127.0.1.1", "::1", "[::1]"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"node0", "10.0.0.1", "fd20::1", "[fd20::1]", "localhost.example", ""}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(Address, UnknownNameIsAnError) {
  const auto addresses = Resolve({"no-such-host.invalid", 1});
  ASSERT_FALSE(addresses.ok());
  EXPECT_EQ(addresses.error().code, ExitCode::Environment);
  EXPECT_THAT(addresses.error().message, HasSubstr("no-such-host.invalid has no address"));
  EXPECT_FALSE(Resolve({"", 1}).ok());
}

TEST(Address, LocalOneTowardsLoopbackIsLoopback) {
  EXPECT_EQ(LocalAddressTowards("127.0.0.1").value(), "127.0.0.1");
  EXPECT_EQ(LocalAddressTowards("::1").value(), "::1");
  EXPECT_FALSE(LocalAddressTowards("no-such-host.invalid").ok());
}

TEST(Address, InterfaceIsTheFirstOfTheListThatIsUp) {
  EXPECT_EQ(AddressOfInterface("lo").value(), "127.0.0.1");
  EXPECT_EQ(AddressOfInterface("nosuch0,,lo").value(), "127.0.0.1");
  const auto none = AddressOfInterface("nosuch0,nosuch1");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ExitCode::Environment);
  EXPECT_THAT(none.error().message, AllOf(HasSubstr("nosuch0,nosuch1"), HasSubstr("lo")));
}

}  // namespace
}  // namespace shardc
